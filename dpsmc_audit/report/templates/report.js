"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  for (const element of all(".js")) element.hidden = false;

  // Histogram: hover, tap, focus and arrow keys show the values of a bin.
  for (const figure of all("figure.histogram")) {
    const output = figure.querySelector("output");
    const show = (chart, bin) => {
      for (const other of all(".bin.on", figure)) other.classList.remove("on");
      bin.classList.add("on");
      output.textContent = bin.dataset.say;
      chart.dataset.at = all(".bin", chart).indexOf(bin);
    };
    for (const chart of all("svg.bins", figure)) {
      for (const title of all("title", chart)) title.remove(); // the line below says it
      for (const kind of ["pointerover", "pointerdown"]) {
        chart.addEventListener(kind, (event) => {
          const bin = event.target.closest(".bin");
          if (bin) show(chart, bin);
        });
      }
      chart.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const bins = all(".bin", chart);
        const at = chart.dataset.at === undefined ? (step > 0 ? -1 : bins.length) : Number(chart.dataset.at);
        show(chart, bins[Math.min(Math.max(at + step, 0), bins.length - 1)]);
      });
    }
  }

  // Profile: a slider over epsilon', and a switch for each observer.
  const store = document.getElementById("profile-data");
  if (store) {
    const data = JSON.parse(store.textContent);
    const figure = document.querySelector("figure.profiles");
    const slider = figure.querySelector("input[type=range]");
    const numbers = (text) => text.split(" ").map(Number);
    const move = () => {
      const k = Number(slider.value);
      slider.setAttribute("aria-valuetext", data.heads[k]);
      figure.querySelector(".head").textContent = data.heads[k];
      for (const observer of data.observers) {
        figure.querySelector(`li[data-observer="${observer.key}"]`).textContent = observer.said[k];
      }
      for (const chart of all("svg.profile", figure)) {
        const [x0, x1, left, right] = numbers(chart.dataset.x);
        const [y0, y1, bottom, top] = numbers(chart.dataset.y);
        const x = left + ((right - left) * (data.epsilon[k] - x0)) / (x1 - x0);
        const cursor = chart.querySelector(".cursor");
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        for (const observer of data.observers) {
          for (const way of ["forth", "back"]) {
            const dot = chart.querySelector(`.observer[data-observer="${observer.key}"] .dot.${way}`);
            const delta = observer[way][k];
            const share = Math.log(delta / y0) / Math.log(y1 / y0);
            dot.setAttribute("cx", x);
            dot.setAttribute("cy", bottom + (top - bottom) * share);
            dot.style.display = delta >= y0 && x <= right + 0.5 ? "" : "none";
          }
        }
      }
    };
    slider.addEventListener("input", move);
    for (const box of all("input.toggle")) {
      box.addEventListener("change", () => {
        for (const curve of all(`.observer[data-observer="${box.value}"]`)) curve.classList.toggle("off", !box.checked);
        figure.querySelector(`li[data-observer="${box.value}"]`).hidden = !box.checked;
      });
    }
    slider.value = data.start; // browsers remember where it was
    for (const box of all("input.toggle")) box.checked = true;
    move();
  }

  // Sweeps: a click on a heading sorts, by numbers where the column has them.
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const headings = all("thead th", table);
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[column].dataset.key;
        const compare = (a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === "" || y === "") return (x === "") - (y === ""); // what is missing stays last
          const order = heading.dataset.kind === "number" ? Number(x) - Number(y) : x.localeCompare(y);
          return up ? order : -order;
        };
        body.append(...[...body.rows].sort(compare));
      });
    });
  }
})();
