// Makes open pages follow what happens. Without it every page reads, and every form works.
"use strict";

// Another theme than that of the system, before anything is painted. A browser may keep nothing: then it is
// for this page alone.
const THEMES = ["system", "light", "dark"];
const theme = {
  get chosen() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  },
  keep(name) {
    try {
      localStorage.setItem("theme", name);
    } catch {
      // It is not kept.
    }
    this.show(name);
  },
  show(name) {
    if (THEMES.indexOf(name) > 0) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
  },
};
theme.show(theme.chosen);

addEventListener("DOMContentLoaded", () => {
  const OLD_AFTER_MS = 5000;
  const body = document.body;
  const fresh = document.getElementById("fresh");
  const again = document.querySelector(".fresh a");
  const known = new Set();
  for (const row of document.querySelectorAll("[data-row]")) known.add(row.dataset.row);

  let stream = null;
  let heardAt = Date.now();
  let shownAt = fresh ? fresh.title : "";
  let held = false;
  let others = 0;
  // What was heard and is not shown yet: a message has only what has changed since the one before.
  let heard = { v: {}, p: {}, c: {} };

  const chosen = () => document.querySelectorAll("main .pick input:checked").length;

  // Figures that are not of now are grey, and say of when they are.
  const mark = () => {
    const old = Date.now() - heardAt > OLD_AFTER_MS;
    body.classList.toggle("old", old);
    if (!fresh) return;
    // The day is of use where it may be another one.
    let text = shownAt.slice(shownAt.indexOf(" ") + 1);
    if (old) text = "figures of " + shownAt;
    if (held) text = "held, " + text;
    again.textContent = others > 0 ? others + " new, reload" : "reload";
    if (fresh.textContent === text) return;
    fresh.textContent = text;
    fresh.title = shownAt;
  };

  // Nothing moves under somebody who selects, types, or has chosen rows.
  const busy = () => {
    if (chosen() > 0) return true;
    const active = document.activeElement;
    const typed = active && active.closest("main") && active.type !== "checkbox";
    if (typed && /^(INPUT|TEXTAREA|SELECT)$/.test(active.tagName)) return true;
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed;
  };

  const show = () => {
    for (const [id, text] of Object.entries(heard.v)) {
      const element = document.getElementById(id);
      if (element && element.textContent !== text) element.textContent = text;
    }
    for (const [id, points] of Object.entries(heard.p)) {
      const element = document.getElementById(id);
      if (element) element.setAttribute("points", points);
    }
    for (const [id, name] of Object.entries(heard.c)) {
      const element = document.getElementById(id);
      if (element) element.className = name;
    }
    if (heard.t) shownAt = heard.t + " UTC";
    heard = { v: {}, p: {}, c: {} };
  };

  const hear = (message) => {
    for (const kind of ["v", "p", "c"]) Object.assign(heard[kind], message[kind]);
    heard.t = message.t;
    others = message.r.filter((row) => !known.has(row)).length;
    heardAt = Date.now();
    if (!held && !busy()) show();
    mark();
  };

  const open = () => {
    if (stream || document.hidden || !body.dataset.events) return;
    stream = new EventSource(body.dataset.events);
    stream.onmessage = (event) => hear(JSON.parse(event.data));
    stream.onerror = () => {
      // A node that refuses ends the stream for good; it may be back later.
      if (stream && stream.readyState === EventSource.CLOSED) {
        stream = null;
        setTimeout(open, 5000);
      }
    };
  };

  const close = () => {
    if (stream) stream.close();
    stream = null;
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  setInterval(mark, 1000);

  const hold = document.createElement("button");
  hold.type = "button";
  hold.className = "hold";
  const label = () => {
    hold.textContent = held ? "go on" : "hold";
    hold.setAttribute("aria-pressed", String(held));
  };
  hold.addEventListener("click", () => {
    held = !held;
    if (!held) show();
    label();
    mark();
  });
  label();
  if (fresh) fresh.after(hold);

  // How many rows are chosen.
  const bar = document.getElementById("chosen");
  const choose = () => {
    const still = chosen() > 0 ? ", figures hold still" : "";
    document.getElementById("count").textContent = chosen() + " chosen" + still + ":";
    if (!held && !busy()) show();
    mark();
  };
  if (bar) {
    for (const box of document.querySelectorAll(".pick input")) box.addEventListener("change", choose);
    // A browser that goes back to the page may have kept the boxes.
    addEventListener("pageshow", choose);
  }

  // Keys: / searches, r reloads, h holds.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "/") {
      const search = document.querySelector(".search input[type=search]");
      if (search) search.focus();
      event.preventDefault();
    }
    if (event.key === "r") location.reload();
    if (event.key === "h") hold.click();
  });

  const header = document.querySelector("header");
  const themes = document.createElement("select");
  themes.name = "theme";
  themes.title = "Theme";
  themes.setAttribute("aria-label", "Theme");
  for (const name of THEMES) themes.add(new Option(name, name));
  themes.value = THEMES.includes(theme.chosen) ? theme.chosen : THEMES[0];
  themes.addEventListener("change", () => theme.keep(themes.value));
  if (header) header.append(themes);

  open();
});
