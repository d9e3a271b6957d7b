// Passkeys: asks the browser for a signature or a new passkey, and sends its answer with the form.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("form[data-passkey]").forEach(offerPasskey);
});

class Refusal extends Error {}
class SessionEnded extends Error {}

function offerPasskey(form) {
  const button = form.querySelector("[data-passkey-button]");
  const message = form.querySelector("[data-passkey-message]");
  const show = (text) => {
    message.textContent = text;
    message.hidden = !text;
  };
  if (!window.PublicKeyCredential?.parseCreationOptionsFromJSON) {
    show(message.dataset.unsupported);
    return;
  }
  const start = async (event) => {
    event.preventDefault();
    show("");
    button.disabled = true;
    try {
      form.elements.credential.value = JSON.stringify(await askBrowser(form));
      form.submit();
    } catch (error) {
      show(describeFailure(error, message.dataset));
      button.disabled = false;
    }
  };
  button.hidden = false;
  if (button.type === "submit") form.addEventListener("submit", start);
  else button.addEventListener("click", start);
}

async function askBrowser(form) {
  const response = await fetch(form.dataset.passkey, { method: "POST", body: new FormData(form) });
  const isJSON = response.headers.get("Content-Type")?.includes("json");
  if (!isJSON) throw new SessionEnded(); // the page of the sign-in, or of an error
  const answer = await response.json();
  if (!response.ok) throw new Refusal(answer.detail);
  const credential = await (form.dataset.creates === undefined
    ? navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(answer) })
    : navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(answer) }));
  return credential.toJSON();
}

function describeFailure(error, texts) {
  if (error instanceof Refusal) return error.message;
  if (error instanceof SessionEnded) return texts.ended;
  return error.name === "InvalidStateError" ? texts.exists : texts.failed;
}
