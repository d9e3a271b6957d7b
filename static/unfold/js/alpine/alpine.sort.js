// In place of the plugin that sorts rows by drag and drop, which unfold loads on each page: no list of Cadastre has it.
