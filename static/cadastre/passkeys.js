// Says on the page why the browser returned no passkey; django-allauth writes it to the console only.
"use strict";

(() => {
  const texts = document.currentScript.dataset;

  function describe(error) {
    if (!window.PublicKeyCredential || error.name === "SecurityError") return texts.unsupported;
    return error.name === "InvalidStateError" ? texts.exists : texts.failed;
  }

  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    const form = document.querySelector("form:has(input[name=credential])");
    let message = form.querySelector("[data-passkey-message]");
    if (!message) {
      message = document.createElement("p");
      message.className = "cad-note cad-note-bad";
      message.setAttribute("role", "alert");
      message.dataset.passkeyMessage = "";
      form.prepend(message);
    }
    message.textContent = describe(event.detail.exception);
  });
})();
