// The theme buttons of every page: a cookie that the server reads, so that no page flashes.

const YEAR_S = 31_536_000;

export function writeCookie(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=${YEAR_S}; samesite=lax${secure}`;
}

/** Binds every `[data-set-theme]` button of the page. */
export function bindTheme() {
  const buttons = [...document.querySelectorAll("[data-set-theme]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = button.dataset.setTheme;
      writeCookie("alcove_theme", button.dataset.setTheme);
      buttons.forEach((other) =>
        other.setAttribute("aria-pressed", String(other.dataset.setTheme === button.dataset.setTheme)),
      );
    });
  }
}

/** Tells the server which zone "today" is meant in. */
export function tellZone() {
  writeCookie("alcove_zone", Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC");
}
