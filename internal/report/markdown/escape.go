package markdown

import (
	"fmt"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// prose returns text of unknown origin as one line of GitHub's Markdown, for a paragraph, a heading or a table cell: it escapes markup,
// HTML, links, mentions and references.
func prose(text string, limit int) string {
	line := report.OneLine(text, limit)
	var escaped strings.Builder
	for i, r := range line {
		switch {
		case r == '@' || r == '#':
			// GitHub finds mentions and references after rendering; a comment in between prevents that.
			fmt.Fprintf(&escaped, "&#%d;<!-- -->", r)
		case strings.ContainsRune("\\`*_[]<>&|~$^{}", r),
			r == ':' && strings.HasPrefix(line[i:], "://"),
			r == '.' && i > 0 && strings.ContainsRune("wW", rune(line[i-1])):
			fmt.Fprintf(&escaped, "&#%d;", r)
		default:
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}

// code returns text of unknown origin as inline code.
func code(text string) string {
	return "<code>" + prose(text, inlineLimit) + "</code>"
}

// inlineLimit limits a name, an id or a reason within a line, in characters.
const inlineLimit = 300

// fenced returns text of unknown origin as a code block, shortened to a number of characters. The fence is longer than any run of backticks
// in it.
func fenced(text string, limit int) string {
	text = strings.TrimRight(report.Shorten(text, limit), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}

// details returns a folded block; the summary and the body are Markdown.
func details(summary, body string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + body + "\n</details>\n"
}
