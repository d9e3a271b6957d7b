// In place of htmx, which unfold loads on each page for its command palette and dialogs: Cadastre has neither.
