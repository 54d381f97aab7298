const PAGE = 10;
let shown = PAGE;
const fits = (d) =>
  (!find("kind").value || d.kind === find("kind").value) &&
  (!find("tag").value || d.tag === find("tag").value) &&
  (!find("form").value || d.form.toLowerCase().includes(find("form").value.toLowerCase()));
function list() {
  const found = data.sentences
    .map((sentence) => ({ sentence, hits: sentence.differences.filter(fits) }))
    .filter(({ hits }) => hits.length);
  const words = found.reduce((sum, { hits }) => sum + hits.length, 0);
  find("found").textContent = `${words} words in ${found.length} sentences`;
  find("list").replaceChildren(
    ...found.slice(0, shown).map(({ sentence, hits }) => {
      const box = make("section", undefined, "pair");
      const picture = make("div", undefined, "figure");
      box.append(make("h3", sentence.name), picture);
      draw(picture, sentence.svg);
      const lines = make("ul", undefined, "plain");
      for (const d of hits) lines.append(make("li", `${d.word} ${d.form} (${d.tag}), ${d.kind}: ${d.first} / ${d.second}`));
      box.append(lines);
      return box;
    }),
  );
  find("more").hidden = found.length <= shown;
}
for (const id of ["kind", "tag", "form"]) find(id).oninput = () => { shown = PAGE; list(); };
find("more").onclick = () => { shown += PAGE; list(); };
list();
