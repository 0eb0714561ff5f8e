// Keeps a page live and the list where it was. Without it every view works as well, by links and forms alone.
"use strict";
(() => {
  const live = document.getElementById("live");
  const list = () => document.getElementById("timeline");
  let head = Number(live.dataset.head);
  let source = null;
  let loading = false;
  let again = false;
  let lost = false;

  // -- ages --------------------------------------------------------------

  const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [1209600, 86400, "day"], [6048000, 604800, "week"]];
  const age = (seconds) => {
    if (seconds < 10) return "just now";
    for (const [below, size, unit] of STEPS) {
      if (seconds < below) {
        const count = Math.floor(seconds / size);
        const word = unit.length > 3 || unit === "day" ? unit + (count === 1 ? "" : "s") : unit;
        return `${count} ${word} ago`;
      }
    }
    return `${Math.floor(seconds / 2592000)} months ago`;
  };
  setInterval(() => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const told = age((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (time.textContent !== told) time.textContent = told;
    }
  }, 10000);

  // -- the list stays where it was ----------------------------------------

  const fit = () => {
    const top = document.querySelector(".two").getBoundingClientRect().top + window.scrollY;
    document.documentElement.style.setProperty("--above", `${Math.ceil(top)}px`);
  };
  const remember = () => sessionStorage.setItem("takeback-scroll", String(list().scrollTop));
  const restore = () => {
    list().scrollTop = Number(sessionStorage.getItem("takeback-scroll") || 0);
    const chosen = list().querySelector("[aria-current]");
    if (chosen) chosen.scrollIntoView({ block: "nearest" });
  };
  addEventListener("pagehide", remember);
  addEventListener("resize", fit);
  document.querySelector(".help").addEventListener("toggle", fit);

  // -- what happened meanwhile ---------------------------------------------

  const say = (text) => { live.textContent = text; };

  const swap = (fresh, id) => {
    const old = document.getElementById(id);
    const renewed = fresh.getElementById(id);
    if (!old || !renewed) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const scroll = old.scrollTop;
    const closed = [...old.querySelectorAll("details")].map((each) => each.open);
    const node = document.importNode(renewed, true);
    if (old.outerHTML === node.outerHTML) return;
    [...node.querySelectorAll("details")].forEach((each, at) => { if (at < closed.length) each.open = closed[at]; });
    old.replaceWith(node);
    node.scrollTop = scroll;
    if (focused) {
      const link = focused.getAttribute("href");
      const same = (focused.id && document.getElementById(focused.id))
        || (link && node.querySelector(`a[href="${CSS.escape(link)}"]`));
      if (same) same.focus({ preventScroll: true });
    }
  };

  const isLive = () => document.getElementById("detail").dataset.live !== undefined;

  const load = () => {
    if (loading) { again = true; return; }
    loading = true;
    const request = new XMLHttpRequest();  // parses HTML as a document in which no script runs
    // A plan is gone once it is applied: beside what is not renewed, the list alone is.
    request.open("GET", isLive() ? location.href : `/timeline${location.search}`);
    request.responseType = "document";
    request.onloadend = () => {
      loading = false;
      const fresh = request.response;
      if (fresh && request.status === 200 && fresh.getElementById("timeline")) {
        const before = list().querySelector("ol > li > a");
        for (const id of ["timeline", "strip", "now"]) swap(fresh, id);
        if (isLive()) swap(fresh, "detail");
        fit();
        const newest = list().querySelector("ol > li > a");
        if (newest && (!before || newest.id !== before.id)) say(`New: ${newest.querySelector(".first").textContent}`);
        else say("The timeline has been renewed");
        setTimeout(() => say(""), 6000);
      } else if (request.status === 401 || request.status === 0) {
        say("takeback web has ended or was started again: open the address in its terminal");
      }
      if (again) { again = false; load(); }
    };
    request.send();
  };

  const listen = () => {
    if (source || document.visibilityState === "hidden") return;
    source = new EventSource(`/events?since=${head}`);
    source.addEventListener("changed", (event) => {
      head = JSON.parse(event.data).head;
      load();
    });
    source.addEventListener("progress", (event) => {
      const { done, of } = JSON.parse(event.data);
      say(done < of ? `Applying: ${done} of ${of} steps done` : "");
    });
    source.addEventListener("failed", (event) => {
      source.close();
      source = null;
      say(JSON.parse(event.data).message);
    });
    source.addEventListener("open", () => {
      document.documentElement.classList.add("is-live");
      if (lost) say("");
      lost = false;
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        source = null;
        say("takeback web has ended or was started again: open the address in its terminal");
      } else {
        lost = true;
        say("The connection is lost: is takeback web still running?");
      }
    });
  };
  // A browser has few connections to one place: a tab that nobody sees gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden" && source) {
      source.close();
      source = null;
    } else {
      listen();
    }
  });

  // -- keys, in the list alone ----------------------------------------------

  document.addEventListener("keydown", (event) => {
    const link = event.target.closest ? event.target.closest("#timeline li > a") : null;
    if (!link || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...list().querySelectorAll("li > a")];
    const at = links.indexOf(link);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined || !links[to]) return;
    event.preventDefault();
    links[to].focus();
  });

  // -- forms: once is enough -------------------------------------------------

  document.addEventListener("submit", (event) => {
    const button = event.target.querySelector("button");
    if (event.target.method !== "post" || !button) return;
    if (button.getAttribute("aria-disabled") === "true") {
      event.preventDefault();
      return;
    }
    button.setAttribute("aria-disabled", "true");
    say(button.dataset.says || "");
    remember();
  });
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[aria-disabled]")) button.removeAttribute("aria-disabled");
  });

  fit();
  restore();
  listen();
  if (live.dataset.progress) say(`Applying: ${live.dataset.progress} steps done`);
})();
