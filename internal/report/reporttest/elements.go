package reporttest

import (
	"strings"

	"golang.org/x/net/html"
)

// Elements returns the number of elements below a node, and the visible text.
func Elements(document *html.Node) (count map[string]int, text string) {
	count = map[string]int{}
	var shown strings.Builder
	for node := range document.Descendants() {
		switch node.Type {
		case html.ElementNode:
			count[node.Data]++
			for _, attribute := range node.Attr {
				if attribute.Key != "style" && attribute.Key != "class" && attribute.Key != "align" {
					count[node.Data+" "+attribute.Key]++
				}
			}
		case html.TextNode:
			shown.WriteString(node.Data)
		}
	}
	return count, shown.String()
}
