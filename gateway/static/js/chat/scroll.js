// Follows the newest words while the reader is at the end, and never otherwise.

const NEAR_END_PX = 80;
const AWAY_KEYS = new Set(["PageUp", "ArrowUp", "Home"]);

/** `reel` scrolls, `content` grows inside it, `jump` is the button that leads back to the end. */
export function createScroll({ reel, content, jump }) {
  let following = true;
  let atStart = false;
  let touchY = 0;
  let last = { top: 0, height: 0 };

  const distance = () => reel.scrollHeight - reel.scrollTop - reel.clientHeight;

  function show() {
    jump.hidden = atStart || following || distance() <= NEAR_END_PX;
    if (jump.hidden) jump.classList.remove("news");
  }

  function settle() {
    if (following && !atStart) reel.scrollTop = reel.scrollHeight;
    show();
  }

  function detach() {
    if (reel.scrollHeight <= reel.clientHeight) return;
    following = false;
    show();
  }

  function onScroll() {
    const { scrollTop: top, scrollHeight: height } = reel;
    // Words that arrive never move the page up: whoever does is a person, by whatever means.
    if (top < last.top - 4 && height >= last.height) following = false;
    if (distance() <= 2) following = true;
    last = { top, height };
    show();
  }

  const on = (name, act) => reel.addEventListener(name, act, { passive: true });
  on("wheel", (event) => event.deltaY < 0 && detach());
  on("touchstart", (event) => (touchY = event.touches[0].clientY));
  on("touchmove", (event) => event.touches[0].clientY > touchY + 4 && detach());
  on("keydown", (event) => AWAY_KEYS.has(event.key) && detach());
  on("scroll", onScroll);

  function follow() {
    following = true;
    atStart = false;
    settle();
  }

  jump.addEventListener("click", follow);
  const sizes = new ResizeObserver(settle);
  sizes.observe(content);
  sizes.observe(reel);

  return {
    follow,
    /** After the page has grown: stay at the end, or say that there is news below. */
    grown() {
      atStart = false;
      if (!following && distance() > NEAR_END_PX) jump.classList.add("news");
      settle();
    },
    /** Nothing is said yet: what stands there is read from its beginning. */
    toStart() {
      atStart = true;
      reel.scrollTop = 0;
      show();
    },
    /** Runs `change`, which puts something above, and keeps what is read where it is. */
    keepPlace(change) {
      const before = reel.scrollHeight - reel.scrollTop;
      change();
      reel.scrollTop = reel.scrollHeight - before;
    },
  };
}
