package describe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/matchers"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/client"
)

var (
	// goTypes are the types, addresses and lengths that Gomega prints in front of a value.
	goTypes = regexp.MustCompile(`(?m)(^\s*)<[\w.*\[\]{}/ -]+>: |<[\w.*\[\]{}/ -]+ \| (?:0x[0-9a-f]+|len:\d+(?:, cap:\d+)?)>(?:: )?|<(?:string|bool|u?int\d*|float\d+|nil)>(?:: )?`)
	// addresses are pointers that Gomega does not follow, and functions.
	addresses = regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`)
	// waited is the first line of a failed Eventually.
	waited = regexp.MustCompile(`\A(Timed out|No future change is possible\. +Bailing out early) after ([\d.]+)s\.\n`)
	// field is how HaveField begins.
	field = regexp.MustCompile(`Value for field '([^']+)' failed to satisfy matcher\.\n`)
	// unexpected is Gomega's output for an error, with its fields after its message.
	unexpected = regexp.MustCompile(`(?s)Unexpected error:\n(.*)\n\s*occurred\z`)
	// described separates the description of an assertion from Gomega's own text.
	described = regexp.MustCompile(`\A([^\n]+[^\n:.,;])\n+(?:Expected|expected)\b`)
)

// brackets replaces those of Gomega's lists, for one line.
var brackets = strings.NewReplacer("[ ", "[", ", ]", "]", "{ ", "{", ", }", "}")

// sentence is the maximum length of a Gomega message that is put on one line, in characters.
const sentence = 240

// Message returns the message of a failed assertion without Go's types, addresses and lengths. It joins the lines of a short message.
func Message(text string) string {
	prefix := ""
	if match := waited.FindStringSubmatch(text); match != nil {
		text = text[len(match[0]):]
		if took, err := time.ParseDuration(match[2] + "s"); err == nil && match[1] == "Timed out" {
			prefix = fmt.Sprintf("Timed out after %s: ", took.Round(time.Second/10))
		}
	}
	text = addresses.ReplaceAllString(goTypes.ReplaceAllString(text, "$1"), "...")
	text = field.ReplaceAllString(text, "$1: ")
	text = strings.ReplaceAll(text, "To satisfy at least one of these matchers:", "to satisfy one of")
	if match := unexpected.FindStringSubmatchIndex(text); match != nil {
		text = text[:match[0]] + "Unexpected error: " + strings.TrimSpace(text[match[2]:match[3]])
	}
	if match := described.FindStringSubmatchIndex(text); match != nil {
		text = text[:match[3]] + ": e" + strings.TrimLeft(text[match[3]:], "\n")[1:]
	}
	if oneLine := brackets.Replace(strings.Join(strings.Fields(text), " ")); len(oneLine) <= sentence && strings.Contains(text, "xpected\n    ") {
		text = oneLine
	}
	return prefix + strings.TrimRight(text, "\n ")
}

// Response describes a response in one line: the request and what the server returned.
func Response(response client.Response) string {
	return response.Request + " returned " + Returned(response)
}

// Returned describes the server's response: the status code, and the object or the message.
func Returned(response client.Response) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	switch message := response.Message(); {
	case response.Err != nil && message != "":
		text += ": " + message
	case response.Object != nil:
		text += ": " + Object(response.Object)
	}
	return text
}

// Value formats values of this project for Gomega (format.RegisterCustomFormatter).
func Value(value any) (string, bool) {
	switch value := value.(type) {
	case *client.Object:
		if value == nil {
			return "no object", true
		}
		return Object(value), true
	case []*client.Object:
		return list(value, Object), true
	case client.Response:
		return Response(value), true
	case []client.Response:
		return list(value, Response), true
	case types.GomegaMatcher:
		return Matcher(value), true
	case []types.GomegaMatcher:
		return list(value, Matcher), true
	case error:
		return "", true // Gomega prints its message before its fields
	case metav1.DeleteOptions, []metav1.DeleteOptions, metav1.OwnerReference, []metav1.OwnerReference, *metav1.Time, map[string]any:
		text, err := json.Marshal(value)
		return string(text), err == nil
	}
	return "", false
}

// list formats one item a line.
func list[T any](items []T, describe func(T) string) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = describe(item)
	}
	return "[" + strings.Join(lines, ",\n") + "]"
}

// Matcher describes a matcher as part of a sentence: "be terminating".
func Matcher(matcher types.GomegaMatcher) string {
	switch matcher := matcher.(type) {
	case fmt.Stringer:
		return matcher.String()
	case *matchers.NotMatcher:
		return "not " + Matcher(matcher.Matcher)
	case *matchers.AndMatcher:
		return joined(matcher.Matchers, " and ")
	case *matchers.OrMatcher:
		return joined(matcher.Matchers, " or ")
	case *matchers.WithTransformMatcher:
		return Matcher(matcher.Matcher)
	case *matchers.HaveFieldMatcher:
		return "have " + matcher.Field + " that must " + expectation(matcher.Expected)
	case *matchers.HaveValueMatcher:
		return Matcher(matcher.Matcher)
	case *matchers.ContainElementMatcher:
		return "contain an element that must " + expectation(matcher.Element)
	case *matchers.HaveEachMatcher:
		return "have only elements that must " + expectation(matcher.Element)
	case *matchers.ConsistOfMatcher:
		return "consist of " + expectations(matcher.Elements)
	}
	return worded(matcher)
}

func joined(all []types.GomegaMatcher, by string) string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = Matcher(one)
	}
	return strings.Join(names, by)
}

// expectation describes a matcher, or a value that is expected to be equal.
func expectation(expected any) string {
	if matcher, ok := expected.(types.GomegaMatcher); ok {
		return Matcher(matcher)
	}
	return "equal " + strings.TrimSpace(Message(format.Object(expected, 0)))
}

func expectations(expected []any) string {
	if len(expected) == 1 {
		if nested, ok := expected[0].([]any); ok {
			return expectations(nested)
		}
	}
	return strings.Join(strings.Fields(list(expected, expectation)), " ")
}

// placeholder stands for a value in the message of a matcher.
type placeholder struct{}

// GomegaString is the text that Gomega prints.
func (placeholder) GomegaString() string { return "it" }

// worded derives the description of a Gomega matcher from its failure message: "Expected it to have length 3". It falls back to the type's
// name for a matcher that needs a real value.
func worded(matcher types.GomegaMatcher) (name string) {
	defer func() {
		if recover() != nil {
			name = "match " + strings.TrimPrefix(fmt.Sprintf("%T", matcher), "*")
		}
	}()
	message := strings.Join(strings.Fields(Message(matcher.FailureMessage(placeholder{}))), " ")
	name = strings.TrimPrefix(strings.TrimPrefix(message, "Expected it"), " ")
	return strings.TrimPrefix(name, "to ")
}
