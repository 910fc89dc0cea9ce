"""The kinds of files by their media type: which are read, how they are named, and what each other kind is called."""

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
XML = "application/xml"
JSON = "application/json"
JSON_LINES = "application/x-ndjson"
CSV = "text/csv"
TSV = "text/tab-separated-values"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODP = "application/vnd.oasis.opendocument.presentation"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
RTF = "application/rtf"

EPUB = "application/epub+zip"
EML = "message/rfc822"
MSG = "application/vnd.ms-outlook"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"
BMP = "image/bmp"

READ = (
    "text, Markdown, HTML, XML, PDF, DOCX, PPTX, XLSX, ODT, ODP, ODS, RTF, EPUB, EML, MSG, JSON, JSON lines, CSV, TSV, "
    "source code, and pictures (PNG, JPEG, TIFF, WebP, BMP)"
)

CODE = {
    "text/x-python": (".py", ".pyi", ".pyw"),
    "text/javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "text/x-typescript": (".ts", ".mts", ".cts"),
    "text/x-tsx": (".tsx",),
    "text/x-java": (".java",),
    "text/x-kotlin": (".kt", ".kts"),
    "text/x-scala": (".scala", ".sc"),
    "text/x-go": (".go",),
    "text/x-rust": (".rs",),
    "text/x-c": (".c", ".h"),
    "text/x-c++": (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
    "text/x-csharp": (".cs",),
    "text/x-swift": (".swift",),
    "text/x-ruby": (".rb", ".rake"),
    "text/x-php": (".php",),
    "text/x-perl": (".pl", ".pm"),
    "text/x-lua": (".lua",),
    "text/x-r": (".r",),
    "text/x-shellscript": (".sh", ".bash", ".zsh"),
    "text/x-sql": (".sql",),
    "text/css": (".css", ".scss", ".less"),
}
"""Source code: each language's media type and the endings of its files' names."""

PICTURES = frozenset({PNG, JPEG, TIFF, WEBP, BMP})
TEXTUAL = frozenset({TEXT, MARKDOWN, HTML, XML, JSON, JSON_LINES, CSV, TSV, EML, *CODE})
OFFICE = frozenset({DOCX, PPTX, XLSX})
"""What an encrypted Office container may hold."""
CONTAINERS = frozenset({PDF, *OFFICE, ODT, ODP, ODS, RTF, EPUB, MSG, *PICTURES})
"""Whose bytes begin with a mark of their own."""

# Such a file is refused by its content; one that only has the name is read as what it is.
_OLD_WORD = "application/msword"
_OLD_EXCEL = "application/vnd.ms-excel"
_OLD_POWERPOINT = "application/vnd.ms-powerpoint"

BY_EXTENSION = {
    **dict.fromkeys((".txt", ".text", ".log", ".srt", ".vtt", ".rst", ".tex"), TEXT),
    **dict.fromkeys((".md", ".markdown", ".mdx", ".mdown", ".mkd"), MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    **dict.fromkeys((".xml", ".rss", ".atom", ".nxml"), XML),
    ".json": JSON,
    **dict.fromkeys((".jsonl", ".ndjson"), JSON_LINES),
    ".csv": CSV,
    ".tsv": TSV,
    ".pdf": PDF,
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), DOCX),
    **dict.fromkeys((".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"), PPTX),
    **dict.fromkeys((".xlsx", ".xlsm", ".xltx", ".xltm"), XLSX),
    **dict.fromkeys((".odt", ".ott"), ODT),
    **dict.fromkeys((".odp", ".otp"), ODP),
    **dict.fromkeys((".ods", ".ots"), ODS),
    ".rtf": RTF,
    ".epub": EPUB,
    **dict.fromkeys((".eml", ".mht", ".mhtml"), EML),
    ".msg": MSG,
    ".png": PNG,
    **dict.fromkeys((".jpg", ".jpeg", ".jpe"), JPEG),
    **dict.fromkeys((".tif", ".tiff"), TIFF),
    ".webp": WEBP,
    ".bmp": BMP,
    **{ending: media_type for media_type, endings in CODE.items() for ending in endings},
    ".doc": _OLD_WORD,
    **dict.fromkeys((".xls", ".xlt"), _OLD_EXCEL),
    **dict.fromkeys((".ppt", ".pps"), _OLD_POWERPOINT),
}
BY_DECLARATION = {
    "text/x-markdown": MARKDOWN,
    "text/mdx": MARKDOWN,
    "application/xhtml+xml": HTML,
    "text/xml": XML,
    "application/rss+xml": XML,
    "application/atom+xml": XML,
    "text/json": JSON,
    "application/ld+json": JSON,
    "application/jsonl": JSON_LINES,
    "application/x-jsonlines": JSON_LINES,
    "application/jsonlines": JSON_LINES,
    "application/csv": CSV,
    "text/x-csv": CSV,
    "application/x-pdf": PDF,
    "application/vnd.ms-word.document.macroenabled.12": DOCX,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template": DOCX,
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": PPTX,
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow": PPTX,
    "application/vnd.openxmlformats-officedocument.presentationml.template": PPTX,
    "application/vnd.ms-excel.sheet.macroenabled.12": XLSX,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template": XLSX,
    **{f"{kind}-template": kind for kind in (ODT, ODP, ODS)},
    "text/rtf": RTF,
    "application/x-rtf": RTF,
    "multipart/related": EML,
    "application/x-mimearchive": EML,
    "image/jpg": JPEG,
    "image/x-ms-bmp": BMP,
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/typescript": "text/x-typescript",
    "application/x-sh": "text/x-shellscript",
    "application/sql": "text/x-sql",
    "application/x-python-code": "text/x-python",
    "text/x-java-source": "text/x-java",
    "text/x-csrc": "text/x-c",
    "text/x-c++src": "text/x-c++",
    "text/x-rustsrc": "text/x-rust",
    "application/x-httpd-php": "text/x-php",
    **{media_type: media_type for media_type in (*TEXTUAL, *CONTAINERS)},
}
NOT_READ = {
    ".xlsb": "a binary Excel workbook (.xlsb)",
}
