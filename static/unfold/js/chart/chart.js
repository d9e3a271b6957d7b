// In place of the 200 kB of Chart.js that unfold loads on each page: Cadastre draws its charts as SVG.
