package manifest

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rule is a CEL rule of a schema (x-kubernetes-validations).
type rule struct {
	Rule, Message, MessageExpression, FieldPath string

	// path is that of the value which the rule is about.
	path []string
}

// rulesOf returns the rules that a rejection is about, those of the deepest value first. The server names the message, or else the rule,
// and the field of the value or of the rule's fieldPath.
func (a *attempt) rulesOf(cause metav1.StatusCause) []rule {
	path := parse(fieldOf(cause))
	said := strings.Join(strings.Fields(cause.Message), " ")
	var about []rule
	for depth := len(path); depth >= 0; depth-- {
		for _, rule := range a.rulesAt(path[:depth]) {
			text := rule.Message
			if text == "" {
				text = rule.Rule
			}
			computed := rule.MessageExpression != "" && (depth == len(path) || rule.FieldPath != "")
			if computed || strings.HasSuffix(said, strings.Join(strings.Fields(text), " ")) {
				about = append(about, rule)
			}
		}
	}
	return about
}

// rulesAt returns the rules of the value at a path.
func (a *attempt) rulesAt(path []string) []rule {
	at := a.at(path)
	if at == nil {
		return nil
	}
	var rules []rule
	_ = at.Extensions.GetObject("x-kubernetes-validations", &rules) // none when it is malformed
	for i := range rules {
		rules[i].path = slices.Clone(path)
	}
	return rules
}

// parsed returns the expression of the rule without expanding macros; nil for a rule that this version of CEL does not know.
func (r rule) parsed() ast.Expr {
	parsing, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return nil
	}
	parsed, errs := parsing.Parse(common.NewTextSource(r.Rule))
	if len(errs.GetErrors()) > 0 {
		return nil
	}
	return parsed.Expr()
}

// unescaped returns the name of a property that a rule cannot write as it is: __namespace__, a__dash__b
// (k8s.io/apiserver/pkg/cel/escaping.go).
func unescaped(name string) string {
	if keyword, ok := strings.CutPrefix(name, "__"); ok && strings.HasSuffix(keyword, "__") && !strings.Contains(strings.TrimSuffix(keyword, "__"), "__") {
		return strings.TrimSuffix(keyword, "__")
	}
	return strings.NewReplacer("__underscores__", "__", "__dot__", ".", "__dash__", "-", "__slash__", "/").Replace(name)
}
