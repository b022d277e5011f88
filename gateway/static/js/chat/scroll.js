// Follows the newest words while the reader is at the end, and never otherwise.

const NEAR_END_PX = 80;
const AWAY_KEYS = new Set(["PageUp", "ArrowUp", "Home"]);

/** `reel` scrolls, `content` grows inside it, `jump` is the button that leads back to the end. */
export function createScroll({ reel, content, jump }) {
  let following = true;
  let touchY = 0;

  const distance = () => reel.scrollHeight - reel.scrollTop - reel.clientHeight;
  const toEnd = () => {
    reel.scrollTop = reel.scrollHeight;
  };

  function show() {
    jump.hidden = following || distance() <= NEAR_END_PX;
    if (jump.hidden) jump.classList.remove("news");
  }

  function detach() {
    if (distance() <= 0 && reel.scrollHeight <= reel.clientHeight) return;
    following = false;
    show();
  }

  reel.addEventListener(
    "wheel",
    (event) => {
      if (event.deltaY < 0) detach();
    },
    { passive: true },
  );
  reel.addEventListener(
    "touchstart",
    (event) => {
      touchY = event.touches[0].clientY;
    },
    { passive: true },
  );
  reel.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches[0].clientY > touchY + 4) detach();
    },
    { passive: true },
  );
  reel.addEventListener("keydown", (event) => {
    if (AWAY_KEYS.has(event.key)) detach();
  });
  reel.addEventListener(
    "scroll",
    () => {
      const away = distance();
      if (away <= 2) following = true;
      else if (away > NEAR_END_PX && !following) show();
      show();
    },
    { passive: true },
  );
  jump.addEventListener("click", () => {
    following = true;
    toEnd();
    show();
  });
  new ResizeObserver(() => {
    if (following) toEnd();
    else show();
  }).observe(content);
  new ResizeObserver(() => {
    if (following) toEnd();
  }).observe(reel);

  return {
    /** After the page has grown: stay at the end, or say that there is news below. */
    grown() {
      if (following) toEnd();
      else if (distance() > NEAR_END_PX) {
        jump.classList.add("news");
        show();
      }
    },
    /** Nothing is said yet: what stands there is read from its beginning. */
    toStart() {
      following = false;
      reel.scrollTop = 0;
      jump.hidden = true;
    },
    follow() {
      following = true;
      toEnd();
      show();
    },
    get following() {
      return following;
    },
    /** Runs `change`, which puts something above, and keeps what is read where it is. */
    keepPlace(change) {
      const before = reel.scrollHeight - reel.scrollTop;
      change();
      reel.scrollTop = reel.scrollHeight - before;
    },
  };
}
