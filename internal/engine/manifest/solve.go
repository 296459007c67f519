package manifest

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// solver searches for objects that satisfy CEL rules. It changes an object where the operators and macros of a rule show which values it
// wants, and ignores other parts of a rule: the server has the last word.
type solver struct{ *attempt }

// objects are solutions, in the order in which to try them. A solution without a change is the given object itself.
type objects = iter.Seq[*unstructured.Unstructured]

// condition is an expression that has to be true, or false.
type condition struct {
	ast.Expr
	scope  scope
	wanted bool
}

// scope is what the variables of a rule stand for.
type scope map[string]variable

// variable is a value of the object, or an expression in the scope around the variable.
type variable struct {
	path  []string
	expr  ast.Expr
	outer scope
}

// with returns a scope with another variable.
func (s scope) with(name ast.Expr, is variable) scope {
	inner := maps.Clone(s)
	if name.Kind() == ast.IdentKind {
		inner[name.AsIdent()] = is
	}
	return inner
}

// of returns another expression in the scope of the condition.
func (c condition) of(expression ast.Expr, wanted bool) condition {
	return condition{expression, c.scope, wanted}
}

// each returns other expressions in the scope of the condition.
func (c condition) each(expressions []ast.Expr, wanted bool) []condition {
	conditions := make([]condition, len(expressions))
	for i, expression := range expressions {
		conditions[i] = c.of(expression, wanted)
	}
	return conditions
}

// bound returns the expression that a variable stands for.
func (c condition) bound() (condition, bool) {
	if c.Kind() != ast.IdentKind {
		return c, false
	}
	bound := c.scope[c.AsIdent()]
	return condition{bound.expr, bound.outer, c.wanted}, bound.expr != nil
}

// not returns the opposite of a condition.
func (c condition) not() condition { return c.of(c.Expr, !c.wanted) }

// satisfying returns objects that satisfy rules.
func (s solver) satisfying(rules []rule, object *unstructured.Unstructured) objects {
	var all []condition
	for _, rule := range rules {
		if parsed := rule.parsed(); parsed != nil {
			all = append(all, condition{parsed, scope{"self": {path: rule.path}}, true})
		}
	}
	return func(yield func(*unstructured.Unstructured) bool) {
		count := 0
		var others []*unstructured.Unstructured
		for solution := range s.all(all, object) {
			if count++; count > maxSolutions {
				break
			}
			if !s.satisfies(solution, all) {
				others = append(others, solution)
			} else if !yield(solution) {
				return
			}
		}
		for _, solution := range others[:min(len(others), maxOthers)] {
			if !yield(solution) {
				return
			}
		}
	}
}

// maxSolutions limits the solutions of several rules, and maxOthers those in which a rule undoes what an earlier one wants. They come last.
const maxSolutions, maxOthers = 200, 3

// satisfies reports whether an object needs no change for the conditions.
func (s solver) satisfies(object *unstructured.Unstructured, conditions []condition) bool {
	for first := range s.all(conditions, object) {
		return first == object
	}
	return false
}

// all returns objects that satisfy all conditions.
func (s solver) all(conditions []condition, object *unstructured.Unstructured) objects {
	if len(conditions) == 0 {
		return slices.Values([]*unstructured.Unstructured{object})
	}
	return func(yield func(*unstructured.Unstructured) bool) {
		for first := range s.solve(conditions[0], object) {
			for rest := range s.all(conditions[1:], first) {
				if !yield(rest) {
					return
				}
			}
		}
	}
}

// any returns objects that satisfy one of several lists of conditions. Those that need no change come first.
func (s solver) any(object *unstructured.Unstructured, alternatives ...[]condition) objects {
	return func(yield func(*unstructured.Unstructured) bool) {
		satisfied := slices.ContainsFunc(alternatives, func(conditions []condition) bool { return s.satisfies(object, conditions) })
		if satisfied && !yield(object) {
			return
		}
		for _, conditions := range alternatives {
			for solution := range s.all(conditions, object) {
				if solution != object && !yield(solution) {
					return
				}
			}
		}
	}
}

// anyOf returns objects that satisfy one of the conditions.
func (s solver) anyOf(conditions []condition, object *unstructured.Unstructured) objects {
	var alternatives [][]condition
	for _, one := range conditions {
		alternatives = append(alternatives, []condition{one})
	}
	return s.any(object, alternatives...)
}

// exactly returns objects that satisfy a number of the conditions, and not the others.
func (s solver) exactly(count int, conditions []condition, object *unstructured.Unstructured) objects {
	if count < 0 || count > len(conditions) {
		return s.all(nil, object)
	}
	var alternatives [][]condition
	for first := range conditions {
		turned := append(slices.Clone(conditions[first:]), conditions[:first]...)
		for i := count; i < len(turned); i++ {
			turned[i] = turned[i].not()
		}
		alternatives = append(alternatives, turned)
	}
	return s.any(object, alternatives...)
}

// solve returns objects that satisfy a condition.
func (s solver) solve(c condition, object *unstructured.Unstructured) objects {
	if bound, ok := c.bound(); ok {
		return s.solve(bound, object)
	}
	if c.Kind() == ast.CallKind {
		return s.call(c, object)
	}
	if path, ok := c.place(); ok && s.kindAt(path) == "boolean" {
		return s.setting(object, path, c.wanted)
	}
	return s.all(nil, object)
}

// call returns objects for which an operator, a macro or a function has the wanted result.
func (s solver) call(c condition, object *unstructured.Unstructured) objects {
	name, operands := c.AsCall().FunctionName(), operandsOf(c)
	switch {
	case len(operands) == 0:
		return s.all(nil, object)
	case name == operators.LogicalNot:
		return s.solve(c.of(operands[0], !c.wanted), object)
	case name == operators.LogicalAnd || name == operators.LogicalOr:
		if (name == operators.LogicalAnd) == c.wanted {
			return s.all(c.each(operands, c.wanted), object)
		}
		return s.anyOf(c.each(operands, c.wanted), object)
	case name == operators.Conditional:
		return s.any(object, []condition{c.of(operands[0], true), c.of(operands[1], c.wanted)}, []condition{c.of(operands[0], false), c.of(operands[2], c.wanted)})
	case name == operators.Has || name == "hasValue":
		return s.has(c.of(operands[0], c.wanted), object)
	case name == operators.In:
		return s.in(c, operands[0], operands[1], object)
	case name == "bind" && len(operands) == 4: // cel.bind(variable, value, expression)
		return s.solve(condition{operands[3], c.scope.with(operands[1], variable{expr: operands[2], outer: c.scope}), c.wanted}, object)
	case slices.Contains(macros, name) && len(operands) > 2:
		return s.quantified(c, name, operands, object)
	case relations[name] != "" && len(operands) == 2:
		relation := relations[name]
		if !c.wanted {
			relation = inverse[relation]
		}
		return s.compare(c.of(operands[0], true), relation, c.of(operands[1], true), object)
	}
	return s.text(c, name, operands, object)
}

// operandsOf returns the target of a call, if it has one, and its arguments.
func operandsOf(c condition) []ast.Expr {
	call := c.AsCall()
	if call.IsMemberFunction() {
		return append([]ast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
}

// has returns objects with a field, or without it.
func (s solver) has(c condition, object *unstructured.Unstructured) objects {
	path, ok := c.place()
	_, present := valueAt(object.Object, path)
	switch {
	case !ok || present == c.wanted:
		return s.all(nil, object)
	case c.wanted:
		return s.changing(object, s.reaching(path, s.adding(path)))
	}
	return s.changing(object, removing(path))
}

// in returns objects in which a value is an element of a list or a key of a map.
func (s solver) in(c condition, element, list ast.Expr, object *unstructured.Unstructured) objects {
	if list.Kind() == ast.ListKind {
		var equal []condition
		for _, one := range list.AsList().Elements() {
			equal = append(equal, c.of(ast.NewExprFactory().NewCall(0, operators.Equals, element, one), c.wanted))
		}
		if c.wanted {
			return s.anyOf(equal, object)
		}
		return s.all(equal, object)
	}
	path, ok := c.of(list, true).place()
	value, known := c.of(element, true).value(object)
	if !ok || !known || !c.wanted {
		return s.all(nil, object)
	}
	if key, ok := value.(string); ok && s.kindAt(path) != "array" {
		return s.has(c.of(ast.NewExprFactory().NewSelect(0, list, key), true), object)
	}
	present, _ := valueAt(object.Object, path)
	elements, _ := present.([]any)
	if slices.ContainsFunc(elements, func(one any) bool { return reflect.DeepEqual(one, value) }) {
		return s.all(nil, object)
	}
	return s.setting(object, path, append(slices.Clone(elements), value))
}

// macros are those over the elements of lists.
var macros = []string{operators.All, operators.Exists, operators.ExistsOne, "existsOne"}

// quantified returns objects for which a macro has the wanted result.
func (s solver) quantified(c condition, macro string, operands []ast.Expr, object *unstructured.Unstructured) objects {
	list, name, body := c.of(operands[0], true), operands[len(operands)-2], operands[len(operands)-1]
	isAll := macro == operators.All
	if path, ok := list.place(); ok && c.wanted && s.kindAt(path) == "object" {
		return s.keyed(list, macro, body, object)
	}
	if path, ok := list.place(); ok && isAll != c.wanted {
		object = s.withElements(path, 1, object) // which the condition can be about
	}
	conditions := s.elements(list, name, body, c.wanted, object)
	switch {
	case isAll == c.wanted:
		return s.all(conditions, object)
	case c.wanted && macro != operators.Exists:
		return s.exactly(1, conditions, object)
	}
	return s.anyOf(conditions, object)
}

// keyed returns objects in which a map has a key that an expression names, for macros that want one.
func (s solver) keyed(keys condition, macro string, body ast.Expr, object *unstructured.Unstructured) objects {
	var named []condition
	ast.PreOrderVisit(body, ast.NewExprVisitor(func(part ast.Expr) {
		key, known := keys.of(part, true).value(object)
		if text, ok := key.(string); ok && known && part.Kind() == ast.LiteralKind {
			named = append(named, keys.of(ast.NewExprFactory().NewCall(0, operators.Has, ast.NewExprFactory().NewSelect(0, keys.Expr, text)), true))
		}
	}))
	if macro == operators.All || len(named) == 0 {
		return s.all(nil, object)
	}
	return s.anyOf(named, object)
}

// elements returns a condition for each element of a list.
func (s solver) elements(list condition, name, body ast.Expr, wanted bool, object *unstructured.Unstructured) []condition {
	var conditions []condition
	add := func(element variable) {
		conditions = append(conditions, condition{body, list.scope.with(name, element), wanted})
	}
	if list.Kind() == ast.ListKind {
		for _, element := range list.AsList().Elements() {
			add(variable{expr: element, outer: list.scope})
		}
		return conditions
	}
	path, ok := list.place()
	present, _ := valueAt(object.Object, path)
	if elements, are := present.([]any); ok && are {
		for i := range elements {
			add(variable{path: append(slices.Clone(path), strconv.Itoa(i))})
		}
	}
	return conditions
}

// relation is how two values compare.
type relation string

var (
	relations = map[string]relation{
		operators.Equals: "==", operators.NotEquals: "!=", operators.Less: "<", operators.LessEquals: "<=",
		operators.Greater: ">", operators.GreaterEquals: ">=", "isLessThan": "<", "isGreaterThan": ">",
	}
	inverse = map[relation]relation{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
	turned  = map[relation]relation{"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
)

// holds reports whether numbers compare so.
func (r relation) holds(a, b float64) bool {
	switch r {
	case "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// step is the difference to the nearest number that compares so.
func (r relation) step() int64 { return map[relation]int64{"<": -1, ">": 1, "!=": 1}[r] }

// compare returns objects in which two values compare so.
func (s solver) compare(left condition, is relation, right condition, object *unstructured.Unstructured) objects {
	if isBoolean(left) && isBoolean(right) {
		same := is == "=="
		return s.any(object, []condition{left, right.of(right.Expr, same)}, []condition{left.not(), right.of(right.Expr, !same)})
	}
	if _, known := right.value(object); !known || left.Kind() == ast.LiteralKind {
		left, is, right = right, turned[is], left
	}
	value, known := right.value(object)
	if path, ok := right.place(); ok && !known {
		return s.compareWith(path, left, is, right, object)
	}
	if !known {
		return s.all(nil, object)
	}
	number, isNumber := value.(int64)
	if counted := s.counted(left, object); len(counted) > 0 && isNumber {
		return s.exactly(int(number+is.step()), counted, object)
	}
	if list, ok := left.measured(); ok && isNumber {
		return s.resized(list, is, int(number), object)
	}
	path, ok := left.place()
	switch before, present := valueAt(object.Object, path); {
	case !ok:
		return s.all(nil, object)
	case present && compares(before, is, value):
		return s.all(nil, object)
	case is == "!=":
		return s.otherThan(path, value, object)
	case isNumber:
		return s.setting(object, path, number+is.step())
	}
	switch value := value.(type) {
	case float64:
		return s.setting(object, path, value+float64(is.step()))
	case string:
		return s.setting(object, path, is.next(value))
	}
	return s.setting(object, path, value)
}

// next returns the text that compares so with another one, which is a time, a duration or a quantity if a rule is about its order.
func (r relation) next(text string) string {
	if r.step() == 0 {
		return text
	}
	if duration, err := time.ParseDuration(text); err == nil {
		return (duration + time.Duration(r.step())*time.Second).String()
	}
	if moment, err := time.Parse(time.RFC3339, text); err == nil {
		return moment.Add(time.Duration(r.step()) * time.Second).Format(time.RFC3339)
	}
	if quantity, err := resource.ParseQuantity(text); err == nil {
		quantity.Add(*resource.NewQuantity(r.step(), quantity.Format))
		return quantity.String()
	}
	return text
}

// compareWith adds a value, and compares another one with it.
func (s solver) compareWith(path []string, left condition, is relation, right condition, object *unstructured.Unstructured) objects {
	return func(yield func(*unstructured.Unstructured) bool) {
		for added := range s.changing(object, s.reaching(path, s.adding(path))) {
			for solution := range s.compare(left, is, right, added) {
				if !yield(solution) {
					return
				}
			}
		}
	}
}

// compares reports whether known values compare so. The order of strings, which may be durations or quantities, is not known.
func compares(left any, is relation, right any) bool {
	a, isA := number(left)
	b, isB := number(right)
	if isA && isB {
		return is.holds(a, b)
	}
	return is == "==" && reflect.DeepEqual(left, right) || is == "!=" && !reflect.DeepEqual(left, right)
}

func number(of any) (float64, bool) {
	switch of := of.(type) {
	case int64:
		return float64(of), true
	case float64:
		return of, true
	}
	return 0, false
}

// isBoolean reports whether an expression is a condition itself.
func isBoolean(c condition) bool {
	if c.Kind() != ast.CallKind {
		return false
	}
	name := c.AsCall().FunctionName()
	logical := []string{operators.LogicalNot, operators.LogicalAnd, operators.LogicalOr, operators.Has, operators.In, "hasValue", "matches"}
	return slices.Contains(logical, name) || slices.Contains(macros, name) || relations[name] != ""
}

// counted returns the conditions that an expression counts: (has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0), or [...].filter(x, x).size().
func (s solver) counted(c condition, object *unstructured.Unstructured) []condition {
	if c.Kind() != ast.CallKind {
		return nil
	}
	operands := operandsOf(c)
	switch name := c.AsCall().FunctionName(); {
	case len(operands) == 0:
	case name == operators.Add:
		return append(s.counted(c.of(operands[0], true), object), s.counted(c.of(operands[1], true), object)...)
	case name == operators.Conditional:
		if one, known := c.of(operands[1], true).value(object); known && one == int64(1) {
			return []condition{c.of(operands[0], true)}
		}
	case name == "size":
		if of := operands[0]; of.Kind() == ast.CallKind && of.AsCall().FunctionName() == operators.Filter {
			filter := operandsOf(c.of(of, true))
			if len(filter) < 3 {
				return nil
			}
			if path, ok := c.of(filter[0], true).place(); ok {
				object = s.withElements(path, 1, object)
			}
			return s.elements(c.of(filter[0], true), filter[1], filter[2], true, object)
		}
	}
	return nil
}

// measured returns the operand of size().
func (c condition) measured() (condition, bool) {
	if c.Kind() != ast.CallKind || c.AsCall().FunctionName() != "size" || len(operandsOf(c)) != 1 {
		return c, false
	}
	return c.of(operandsOf(c)[0], true), true
}

// resized returns objects in which the size of a string, a list or a map compares so.
func (s solver) resized(c condition, is relation, size int, object *unstructured.Unstructured) objects {
	path, ok := c.place()
	if !ok {
		return s.all(nil, object)
	}
	present, _ := valueAt(object.Object, path)
	if is.holds(float64(sizeOf(present)), float64(size)) {
		return s.all(nil, object)
	}
	size += int(is.step())
	if s.kindAt(path) == "array" {
		return s.all(nil, s.withElements(path, size, object))
	}
	at := s.at(path)
	if at == nil || size < 0 {
		return s.all(nil, object)
	}
	sized, length := *at, int64(size)
	if sized.Default = nil; kindOf(at) == "string" {
		sized.MinLength, sized.MaxLength, sized.Enum, sized.Format = &length, &length, nil, ""
	}
	sized.MinProperties = &length
	value, err := s.value(&sized)
	if err != nil {
		return s.all(nil, object)
	}
	return s.setting(object, path, value)
}

func sizeOf(value any) int {
	switch value := value.(type) {
	case string:
		return len(value)
	case []any:
		return len(value)
	case map[string]any:
		return len(value)
	}
	return 0
}

// withElements returns the object with this number of elements in a list, or with more elements if it has them.
func (s solver) withElements(path []string, count int, object *unstructured.Unstructured) *unstructured.Unstructured {
	at := s.at(path)
	present, _ := valueAt(object.Object, path)
	elements, _ := present.([]any)
	if at == nil || kindOf(at) != "array" || len(elements) >= count {
		return object
	}
	least := int64(count)
	longer := *at
	longer.MinItems, longer.Default = &least, nil
	added, err := s.array(&longer)
	if err != nil {
		return object
	}
	for changed := range s.setting(object, path, append(slices.Clone(elements), added[len(elements):]...)) {
		return changed
	}
	return object
}

// trueOf are values for which functions of Kubernetes' CEL libraries are true.
var trueOf = map[string]string{"isURL": samples["uri"], "isIP": samples["ipv4"], "isCIDR": samples["cidr"], "isQuantity": samples["quantity"]}

// text returns objects in which a function of a string has the wanted result.
func (s solver) text(c condition, function string, operands []ast.Expr, object *unstructured.Unstructured) objects {
	path, ok := c.of(operands[0], true).place()
	argument, known := c.of(operands[len(operands)-1], true).value(object)
	part, isText := argument.(string)
	present, _ := valueAt(object.Object, path)
	before, isPresent := present.(string)
	sample, always := trueOf[function]
	switch {
	case !ok || !always && (!known || !isText) || isPresent && holds(before, function, part) == c.wanted:
	case !c.wanted:
		return s.otherThan(path, present, object)
	case always:
		return s.setting(object, path, sample)
	case function == "matches":
		if sample, err := matching(part, 0, math.MaxInt); err == nil {
			return s.setting(object, path, sample)
		}
	case function == "startsWith":
		return s.setting(object, path, part+before, part)
	case function == "endsWith" || function == "contains":
		return s.setting(object, path, before+part, part)
	}
	return s.all(nil, object)
}

// holds reports whether a function of two strings is true. It is false for other functions.
func holds(text, function, part string) bool {
	switch function {
	case "matches":
		matches, err := regexp.MatchString(part, text)
		return matches && err == nil
	case "startsWith":
		return strings.HasPrefix(text, part)
	case "endsWith":
		return strings.HasSuffix(text, part)
	}
	return function == "contains" && strings.Contains(text, part)
}

// otherThan returns objects with another valid value at a path.
func (s solver) otherThan(path []string, value any, object *unstructured.Unstructured) objects {
	at := s.at(path)
	if at == nil {
		return s.all(nil, object)
	}
	var others []any
	switch value := value.(type) {
	case bool:
		others = append(others, !value)
	case int64:
		others = append(others, value+1, value-1)
	case string:
		others = append(others, value+"a")
		for length := int64(1); length <= 3; length++ {
			longer := *at
			longer.MinLength, longer.Default = &length, nil
			if other, err := s.value(&longer); err == nil {
				others = append([]any{other}, others...)
			}
		}
	}
	if len(at.Enum) > 0 {
		others = nil
		for _, other := range at.Enum {
			others = append(others, plain(other))
		}
	}
	return s.setting(object, path, slices.DeleteFunc(others, func(other any) bool { return reflect.DeepEqual(other, value) })...)
}

// setting returns objects with each of the values at a path.
func (s solver) setting(object *unstructured.Unstructured, path []string, values ...any) objects {
	present, _ := valueAt(object.Object, path)
	if slices.ContainsFunc(values, func(value any) bool { return reflect.DeepEqual(present, value) }) {
		return s.all(nil, object)
	}
	var changes []change
	for _, value := range values {
		changes = append(changes, s.reaching(path, setting(path, value)))
	}
	return s.changing(object, changes...)
}

// changing returns the object after each of the changes. Changes that are not possible are left out.
func (s solver) changing(object *unstructured.Unstructured, changes ...change) objects {
	return func(yield func(*unstructured.Unstructured) bool) {
		for _, change := range changes {
			if changed := object.DeepCopy(); change(changed.Object) == nil && !yield(changed) {
				return
			}
		}
	}
}

// reaching derives the missing parents of a value before it is changed.
func (s solver) reaching(path []string, then change) change {
	return func(object map[string]any) error {
		for depth := 1; depth < len(path); depth++ {
			if _, present := valueAt(object, path[:depth]); present {
				continue
			}
			if err := s.adding(path[:depth])(object); err != nil {
				return err
			}
		}
		return then(object)
	}
}

// kindAt is the type of the schema at a path.
func (s solver) kindAt(path []string) string {
	if at := s.at(path); at != nil {
		return kindOf(at)
	}
	return ""
}

// conversions are functions whose operand has the place and about the value of the result.
var conversions = []string{
	"string", "int", "double", "dyn", "duration", "quantity", "timestamp", "url", "orValue", "value", "trim", "lowerAscii", "asInteger",
	"asApproximateFloat", operators.OptSelect, operators.Index, operators.OptIndex,
}

// place returns the path of the value that an expression reads: self.spec.name, element.name, self["key"], self.?name.orValue("").
func (c condition) place() (path []string, ok bool) {
	switch c.Kind() {
	case ast.IdentKind:
		if bound, ok := c.bound(); ok {
			return bound.place()
		}
		is, known := c.scope[c.AsIdent()]
		return is.path, known
	case ast.SelectKind:
		path, ok := c.of(c.AsSelect().Operand(), true).place()
		return append(slices.Clone(path), unescaped(c.AsSelect().FieldName())), ok
	case ast.CallKind:
		name, operands := c.AsCall().FunctionName(), operandsOf(c)
		if !slices.Contains(conversions, name) || len(operands) == 0 {
			return nil, false
		}
		path, ok := c.of(operands[0], true).place()
		if name == operators.OptSelect || name == operators.Index || name == operators.OptIndex {
			key, known := c.of(operands[1], true).value(&unstructured.Unstructured{})
			return append(slices.Clone(path), unescaped(fmt.Sprint(key))), ok && known
		}
		return path, ok
	}
	return nil, false
}

// value returns the value of an expression that is a constant, or a value of the object.
func (c condition) value(object *unstructured.Unstructured) (any, bool) {
	if bound, ok := c.bound(); ok {
		return bound.value(object)
	}
	switch c.Kind() {
	case ast.LiteralKind:
		if unsigned, ok := c.AsLiteral().Value().(uint64); ok {
			return int64(unsigned), true //nolint:gosec // a constant of a rule
		}
		return c.AsLiteral().Value(), true
	case ast.ListKind:
		list := []any{}
		for _, element := range c.AsList().Elements() {
			value, known := c.of(element, true).value(object)
			if !known {
				return nil, false
			}
			list = append(list, value)
		}
		return list, true
	case ast.CallKind:
		if operands := operandsOf(c); slices.Contains(conversions, c.AsCall().FunctionName()) && len(operands) == 1 && operands[0].Kind() == ast.LiteralKind {
			return c.of(operands[0], true).value(object)
		}
	}
	path, ok := c.place()
	if !ok {
		return nil, false
	}
	return valueAt(object.Object, path)
}

// valueAt returns the value at a path of objects and lists.
func valueAt(value any, path []string) (any, bool) {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			inner, has := parent[step]
			if !has {
				return nil, false
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			value = parent[i]
		default:
			return nil, false
		}
	}
	return value, true
}
