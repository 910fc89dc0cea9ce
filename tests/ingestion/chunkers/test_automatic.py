from app.domain import ChunkingOptions
from app.ingestion.chunkers.automatic import chunk_automatically


def test_headings_are_followed_where_there_are_any(plain, markdown, count_tokens):
    def paths(extraction):
        return [one.heading_path for one in chunk_automatically(extraction, ChunkingOptions(), count_tokens, 512)]

    assert paths(markdown("# A\na\n# B\nb")) == [("A",), ("B",)]
    assert paths(plain("A\na\nB\nb", headings=[(1, "A", 0), (1, "B", 4)])) == [("A",), ("B",)]
    assert paths(plain("# A\na\n# B\nb")) == [()]


def test_markdown_without_headings_keeps_its_code_whole(markdown, count_tokens):
    fence = "```\n" + "\n\n".join(f"step {n}" for n in range(8)) + "\n```"
    text = f"{'Words of prose. ' * 10}\n\n{fence}\n\n{'Words of prose. ' * 10}"
    chunks = list(chunk_automatically(markdown(text), ChunkingOptions(size=170), count_tokens, 512))
    assert any(fence in one.text for one in chunks)
