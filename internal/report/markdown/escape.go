package markdown

import (
	"fmt"
	"strings"

	"github.com/deletion-conformance/deletion-conformance/internal/report"
)

// prose is text of unknown origin as one line of GitHub's Markdown, fit for a paragraph, a heading or a table's cell:
// whatever would be markup, HTML, a link, a mention or a reference is shown as it is written.
func prose(text string, limit int) string {
	line := report.OneLine(text, limit)
	var escaped strings.Builder
	for i, r := range line {
		switch {
		case r == '@' || r == '#':
			// GitHub finds mentions and references in the text after Markdown; a comment in between stops that.
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

// code is text of unknown origin in the font of code, within a line.
func code(text string) string {
	return "<code>" + prose(text, inlineLimit) + "</code>"
}

// inlineLimit is how many characters a name, an id or a reason may have within a line.
const inlineLimit = 300

// fenced is text of unknown origin as a block of code, shortened to a number of characters. The fence is longer than
// any run of backticks within.
func fenced(text string, limit int) string {
	text = strings.TrimRight(report.Shorten(report.Visible(text), limit), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}

// details is a block that is shown folded; the summary and the body are Markdown already.
func details(summary, body string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + body + "\n</details>\n"
}
