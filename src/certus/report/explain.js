// -- the k best: flip through them --------------------------------------------------------------------------------------
function ranks() {
  if (data.kbest.length < 2) return;
  let at = 0;
  const show = (k) => {
    at = Math.max(0, Math.min(data.kbest.length - 1, k));
    const rank = data.kbest[at];
    draw(find("tree"), rank.svg);
    find("rank").textContent = `${at + 1} of ${data.kbest.length}`;
    find("rank-said").textContent = rank.said;
    find("before").disabled = at === 0;
    find("after").disabled = at === data.kbest.length - 1;
    listen();
  };
  find("ranks").hidden = false;
  find("before").onclick = () => show(at - 1);
  find("after").onclick = () => show(at + 1);
  show(0);
}

// -- a word: why this head ----------------------------------------------------------------------------------------------
const named = (v) => (v === 0 ? "the root" : `“${data.words[v - 1].form}”`);
function bar(value, most) {
  const line = make("span", undefined, "bar");
  const fill = make("span", undefined, value < 0 ? "against" : "for");
  fill.style.width = `${Math.min(50, (50 * Math.abs(value)) / most)}%`;
  line.append(fill);
  return line;
}
function evidence(rival) {
  const box = make("div", undefined, "evidence");
  const most = Math.max(...rival.groups.map((group) => Math.abs(group.sum)), 1e-9);
  for (const group of rival.groups) {
    const part = make("details");
    const head = make("summary");
    head.append(make("span", group.name, "name"), bar(group.sum, most), make("span", signed(group.sum), "sum"));
    part.append(head);
    const list = make("ul");
    for (const [text, weight] of group.features) {
      const item = make("li");
      item.append(make("span", signed(weight), "sum"), make("span", text));
      list.append(item);
    }
    if (!group.features.length) list.append(make("li", "many small ones"));
    part.append(list);
    box.append(part);
  }
  return box;
}
function explain(v) {
  const word = data.words[v - 1];
  const panel = find("word");
  for (const element of document.querySelectorAll(".word.chosen")) element.classList.remove("chosen");
  for (const element of document.querySelectorAll(`#tree [data-word="${v}"]`)) element.classList.add("chosen");
  panel.replaceChildren(make("h3", `${named(v)} has the head ${named(word.head)}${word.label ? ` (${word.label})` : ""}`));
  panel.append(make("p", `${(100 * word.confidence).toFixed(1)}% sure`, "note"));
  if (!word.rivals.length) panel.append(make("p", "No other head was left to choose from: the filters before the search removed all."));
  const all = make("div", undefined, "rivals");
  for (const rival of word.rivals) {
    const box = make("section", undefined, "rival");
    box.append(make("h4", `rather than ${named(rival.head)}: ${signed(rival.margin)}`));
    if (rival.changes.length) {
      const also = rival.changes.map(([m, h]) => `${named(m)} under ${named(h)}`).join(", ");
      box.append(make("p", `With that head, also ${also}.`, "note"));
    }
    box.append(evidence(rival));
    all.append(box);
  }
  panel.append(all);
}
function listen() {
  if (!data.words.length) return;
  for (const element of document.querySelectorAll("#tree [data-word]")) {
    element.setAttribute("tabindex", "0");
    element.setAttribute("role", "button");
    element.onclick = () => explain(Number(element.dataset.word));
    element.onkeydown = (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); element.onclick(); }
    };
  }
}

// -- the proof as a film ------------------------------------------------------------------------------------------------
function film() {
  const reel = data.film;
  if (!reel) return;
  const slider = find("round"), curve = find("curve"), left = reel.plot.left, width = reel.plot.width;
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "stroke faint bold now");
  line.setAttribute("y1", reel.plot.top);
  line.setAttribute("y2", reel.plot.bottom);
  curve.querySelector("svg").append(line);
  const shown = [];
  const show = (k) => {
    const frame = reel.frames[k];
    slider.value = k;
    const x = reel.frames.length > 1 ? left + (width * k) / (reel.frames.length - 1) : left + width / 2;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    find("round-number").textContent = `Round ${k + 1} of ${reel.frames.length}`;
    find("dual").textContent = number(frame.dual);
    find("primal").textContent = number(frame.primal);
    find("gap").textContent = frame.primal === null ? "–" : number(Math.max(0, frame.dual - frame.primal));
    find("round-said").textContent = frame.said;
    frame.shown.forEach((picture, side) => {
      const place = find(`side${side}`);
      if (shown[side] !== picture) draw(place, reel.pictures[picture]);
      shown[side] = picture;
      const marked = new Set(frame.apart.map(([kind, value]) => `${kind}=${value}`));
      for (const element of place.querySelectorAll("[data-part],[data-tag]")) {
        const hit = marked.has(`part=${element.dataset.part}`) || marked.has(`tag=${element.dataset.tag}`);
        element.classList.toggle("apart", hit);
      }
    });
  };
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; find("play").textContent = "Play"; };
  slider.oninput = () => { stop(); show(Number(slider.value)); };
  find("play").onclick = () => {
    if (timer !== null) return stop();
    let k = Number(slider.value) + 1;
    if (k >= reel.frames.length) k = 0;
    find("play").textContent = "Stop";
    show(k);
    timer = setInterval(() => { k += 1; if (k >= reel.frames.length) stop(); else show(k); }, 700);
  };
  show(0);
}
ranks();
listen();
film();
if (data.words.length) explain(data.first);
