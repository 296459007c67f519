package model_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/model"
)

// is returns an object that is version v of the object with uid u, with changes.
func is(uid, version string, changes ...func(*model.Object)) model.Object {
	object := model.Object{UID: uid, ResourceVersion: version, Value: "1"}
	for _, change := range changes {
		change(&object)
	}
	return object
}

func value(to string) func(*model.Object) { return func(o *model.Object) { o.Value = to } }
func label(to string) func(*model.Object) { return func(o *model.Object) { o.Label = to } }
func held(by ...string) func(*model.Object) {
	return func(o *model.Object) { o.Finalizers = model.NamesOf(by...) }
}
func status(to string) func(*model.Object)   { return func(o *model.Object) { o.Status = to } }
func owned(o *model.Object)                  { o.Owners = "o/o" }
func terminating(o *model.Object)            { o.Terminating = true }
func exists(object model.Object) model.State { return model.State{Exists: true, Object: object} }
func ok(object model.Object) model.Outcome   { return model.Outcome{Code: 200, Object: &object} }
func code(code int) model.Outcome            { return model.Outcome{Code: code} }
func writes(to string) model.Change          { return model.Change{Value: &to} }
func holds(by ...string) model.Change {
	names := model.NamesOf(by...)
	return model.Change{Finalizers: &names}
}
func gone(uid string) model.State                  { return model.State{Former: uid} }
func after(mark string, s model.State) model.State { s.Marks = model.Names(mark); return s }

// former is a state whose object replaces another one.
func former(uid string, s model.State) model.State { s.Former = uid; return s }

var (
	none   = model.State{}
	lost   = model.Outcome{}
	create = model.Operation{Verb: model.Create, Change: writes("1")}
	get    = model.Operation{Verb: model.Get}
	remove = model.Operation{Verb: model.Delete}
	// ended is the removal of version 1 of the object with uid u by another client.
	ended = model.Operation{Verb: model.Foreign, UID: "u", ResourceVersion: "1"}
)

// wrote is another client's write over a version.
func wrote(over string) model.Operation {
	return model.Operation{Verb: model.Foreign, ResourceVersion: over}
}

// alsoPossible are the states if the garbage collector has acted before the operation, by the name of the case.
var alsoPossible = map[string]model.State{
	"an apply without a response":                     {Exists: true, Object: is("", "", value("2")), Former: "u"},
	"and removes what the collector may remove again": gone("u"),
}

func TestStep_Allowed(t *testing.T) {
	for name, test := range map[string]struct {
		before    model.State
		operation model.Operation
		outcome   model.Outcome
		after     model.State
	}{
		"a create makes an object":                {none, create, model.Outcome{Code: 201, Object: new(is("u", "1"))}, exists(is("u", "1"))},
		"a create with a name that is taken":      {exists(is("u", "1")), create, code(409), exists(is("u", "1"))},
		"a create with a name that was taken":     {gone("u"), create, ok(is("v", "2")), model.State{Exists: true, Object: is("v", "2"), Former: "u"}},
		"a get":                                   {exists(is("u", "1")), get, ok(is("u", "1")), exists(is("u", "1"))},
		"a get of nothing":                        {none, get, code(404), none},
		"an update of nothing":                    {none, model.Operation{Verb: model.Update, ResourceVersion: "1"}, code(404), none},
		"a dry-run of an update that creates":     {none, model.Operation{Verb: model.Update, Change: writes("1"), DryRun: true}, model.Outcome{Code: 201, Object: new(is("u", ""))}, none},
		"an update that creates":                  {none, model.Operation{Verb: model.Update, Change: writes("1")}, model.Outcome{Code: 201, Object: new(is("u", "1"))}, exists(is("u", "1"))},
		"an update of a version of nothing":       {none, model.Operation{Verb: model.Update, ResourceVersion: "1"}, code(409), none},
		"an apply of nothing":                     {none, model.Operation{Verb: model.Apply, Change: writes("1")}, model.Outcome{Code: 201, Object: new(is("u", "1"))}, exists(is("u", "1"))},
		"an update of the current version":        {exists(is("u", "1")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, ok(is("u", "2", value("2"))), exists(is("u", "2", value("2")))},
		"an update of a stale version":            {exists(is("u", "2")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, code(409), exists(is("u", "2"))},
		"a patch that changes nothing":            {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("1")}, ok(is("u", "1")), exists(is("u", "1"))},
		"a finalizer for a terminating object":    {exists(is("u", "1", terminating, held("a"))), model.Operation{Verb: model.Patch, Change: holds("a", "b")}, code(422), exists(is("u", "1", terminating, held("a")))},
		"a delete":                                {exists(is("u", "1")), remove, code(200), gone("u")},
		"a delete of nothing":                     {gone("u"), remove, code(404), gone("u")},
		"a delete of a held object":               {exists(is("u", "1", held("a"))), remove, ok(is("u", "2", held("a"), terminating)), exists(is("u", "2", held("a"), terminating))},
		"a delete of a terminating object":        {exists(is("u", "2", held("a"), terminating)), remove, ok(is("u", "2", held("a"), terminating)), exists(is("u", "2", held("a"), terminating))},
		"a delete with another uid":               {exists(is("u", "1")), model.Operation{Verb: model.Delete, UID: "v"}, code(409), exists(is("u", "1"))},
		"a delete with another version":           {exists(is("u", "1")), model.Operation{Verb: model.Delete, ResourceVersion: "0"}, code(409), exists(is("u", "1"))},
		"a dry-run delete":                        {exists(is("u", "1")), model.Operation{Verb: model.Delete, DryRun: true}, code(200), exists(is("u", "1"))},
		"a dry-run create":                        {none, model.Operation{Verb: model.Create, DryRun: true, Change: writes("1")}, ok(is("u", "")), none},
		"the last finalizer of a terminating one": {exists(is("u", "2", held("a"), terminating)), model.Operation{Verb: model.Patch, Change: holds()}, ok(is("u", "2", terminating)), gone("u")},
		"the last finalizer of one that is not":   {exists(is("u", "2", held("a"))), model.Operation{Verb: model.Patch, Change: holds()}, ok(is("u", "3")), exists(is("u", "3"))},
		"a foreground delete":                     {exists(is("u", "1")), model.Operation{Verb: model.Delete, Policy: model.PolicyForeground}, ok(is("u", "2", terminating, held(model.Foreground))), exists(is("u", "2", terminating, held(model.Foreground)))},
		"a background delete of it":               {exists(is("u", "2", terminating, held(model.Foreground))), model.Operation{Verb: model.Delete, Policy: model.PolicyBackground}, code(200), gone("u")},
		"a deletecollection that adds what the garbage collector removed": {after("7+", exists(is("u", "2", terminating, held(model.Foreground, "a")))), model.Operation{Verb: model.Delete, Policy: model.PolicyForeground, Awaits: "7"}, code(200), exists(is("u", "", terminating, held(model.Foreground, "a")))},
		"an orphaning delete of it":                                       {exists(is("u", "2", terminating, held(model.Foreground))), model.Operation{Verb: model.Delete, Policy: model.PolicyOrphan}, ok(is("u", "3", terminating, held(model.Orphan))), exists(is("u", "3", terminating, held(model.Orphan)))},
		"the garbage collector removes":                                   {exists(is("u", "2", terminating, held(model.Foreground))), get, code(404), gone("u")},
		"the garbage collector is one of two":                             {exists(is("u", "2", terminating, held(model.Foreground, "a"))), get, ok(is("u", "3", terminating, held("a"))), exists(is("u", "3", terminating, held("a")))},
		"a lost create":                                                   {none, create, lost, exists(is("", ""))},
		"a get after a lost create":                                       {exists(is("", "")), get, ok(is("u", "1")), exists(is("u", "1"))},
		"a lost create of a name that is taken":                           {exists(is("u", "1")), create, lost, exists(is("u", "1"))},
		"a stale write after a lost one":                                  {exists(is("u", "")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, code(409), exists(is("u", ""))},
		"a lost delete":                                                   {exists(is("u", "1")), remove, lost, gone("u")},
		"a lost dry-run":                                                  {exists(is("u", "1")), model.Operation{Verb: model.Delete, DryRun: true}, lost, exists(is("u", "1"))},
		"a list that selects":                                             {exists(is("u", "1", label("x"))), model.Operation{Verb: model.Select, Label: "x"}, ok(is("u", "1", label("x"))), exists(is("u", "1", label("x")))},
		"a list that does not select":                                     {exists(is("u", "1", label("y"))), model.Operation{Verb: model.Select, Label: "x"}, code(200), exists(is("u", "1", label("y")))},
		"a deletecollection that selects":                                 {exists(is("u", "1")), model.Operation{Verb: model.Select, Marks: "7"}, ok(is("u", "1")), after("7+", exists(is("u", "1")))},
		"its delete":                                                      {after("7+", exists(is("u", "2", value("2")))), model.Operation{Verb: model.Delete, Awaits: "7"}, code(200), gone("u")},
		"its delete of what it did not select":                            {after("7-", exists(is("u", "1"))), model.Operation{Verb: model.Delete, Awaits: "7"}, code(200), exists(is("u", "1"))},
		"its delete of what is gone":                                      {after("7+", gone("u")), model.Operation{Verb: model.Delete, Awaits: "7"}, code(200), gone("u")},
		"an apply without a response":                                     {exists(is("u", "2", terminating, held(model.Orphan))), model.Operation{Verb: model.Apply, Change: writes("2")}, lost, exists(is("u", "", terminating, held(model.Orphan), value("2")))},
		"a delete that decides":                                           {exists(is("u", "1")), model.Operation{Verb: model.Delete, Marks: "8"}, code(200), after("8+", exists(is("u", "1")))},
		"a delete without a response decides against what its preconditions forbid": {exists(is("u", "2")), model.Operation{Verb: model.Delete, ResourceVersion: "1", Marks: "8"}, lost, after("8-", exists(is("u", "2")))},
		"a status update":                                   {exists(is("u", "1")), model.Operation{Verb: model.UpdateStatus, Change: model.Change{Status: new("s")}}, ok(is("u", "2", status("s"))), exists(is("u", "2", status("s")))},
		"a change of owners":                                {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: model.Change{Owners: new(model.Names("o/o"))}}, ok(is("u", "2", owned)), exists(is("u", "2", owned))},
		"a dry-run of a change":                             {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("2"), DryRun: true}, ok(is("u", "1", value("2"))), exists(is("u", "1"))},
		"an update without a version":                       {exists(is("u", "1")), model.Operation{Verb: model.Update, Change: writes("2")}, ok(is("u", "2", value("2"))), exists(is("u", "2", value("2")))},
		"an update without a version is refused":            {exists(is("u", "1")), model.Operation{Verb: model.Update, Change: writes("2")}, code(422), exists(is("u", "1"))},
		"an update of a uid of nothing":                     {none, model.Operation{Verb: model.Update, UID: "u"}, code(409), none},
		"an apply of a uid of nothing":                      {none, model.Operation{Verb: model.Apply, UID: "u"}, code(409), none},
		"a lost update that creates":                        {none, model.Operation{Verb: model.Update, Change: writes("1")}, lost, exists(is("", ""))},
		"a lost patch of nothing":                           {none, model.Operation{Verb: model.Patch, Change: writes("1")}, lost, none},
		"a lost patch":                                      {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("2")}, lost, exists(is("u", "", value("2")))},
		"a lost patch that changes nothing":                 {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("1")}, lost, exists(is("u", "1"))},
		"a lost update of a stale version":                  {exists(is("u", "2")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, lost, exists(is("u", "2"))},
		"a delete with a uid after a lost create":           {exists(is("", "")), model.Operation{Verb: model.Delete, UID: "u"}, code(200), gone("unknown")},
		"a list selects what has a label":                   {exists(is("u", "1", label("y"))), model.Operation{Verb: model.Select}, ok(is("u", "1", label("y"))), exists(is("u", "1", label("y")))},
		"a lost deletecollection that selects":              {exists(is("u", "1")), model.Operation{Verb: model.Select, Marks: "7"}, lost, after("7+", exists(is("u", "1")))},
		"a deletecollection that shows no list":             {exists(is("u", "1")), model.Operation{Verb: model.Select, Marks: "7"}, code(204), after("7+", exists(is("u", "1")))},
		"a deletecollection that does not select":           {exists(is("u", "1", label("y"))), model.Operation{Verb: model.Select, Marks: "7", Label: "x"}, code(200), after("7-", exists(is("u", "1", label("y"))))},
		"and removes what the collector may remove again":   {after("8+", exists(is("u", "2", terminating, held(model.Orphan)))), model.Operation{Verb: model.Remove, Awaits: "8"}, code(200), after("collector", gone("u"))},
		"and removes what the collector cannot remove":      {after("8+", exists(is("u", "2", terminating, held(model.Orphan, "a")))), model.Operation{Verb: model.Remove, Awaits: "8"}, code(200), gone("u")},
		"the collector removes the next object":             {after("collector", exists(is("v", "3"))), get, code(404), gone("v")},
		"the collector has not yet removed the next object": {after("collector", exists(is("v", "3"))), get, ok(is("v", "3")), after("collector", exists(is("v", "3")))},
		"the collector finds no next object":                {after("collector", gone("u")), get, code(404), after("collector", gone("u"))},
		"another client's write":                            {exists(is("u", "1")), wrote("1"), ok(is("u", "2", held("o/f"))), exists(is("u", "2", held("o/f")))},
		"another client's write over an unknown version":    {exists(is("u", "")), wrote("1"), ok(is("u", "2", held("o/f"))), exists(is("u", "2", held("o/f")))},
		"another client's write that a lost request did":    {exists(is("u", "", held("a"))), wrote("1"), ok(is("u", "2", held("a"))), exists(is("u", "2", held("a")))},
		"another client's create":                           {gone("u"), wrote(""), ok(is("v", "2")), former("u", exists(is("v", "2")))},
		"another client's removal":                          {exists(is("u", "1")), ended, code(200), gone("u")},
		"another client's removal that a request did":       {gone("u"), ended, code(200), gone("u")},
		"another client's removal before the next object":   {former("u", exists(is("v", "3"))), ended, code(200), former("u", exists(is("v", "3")))},
		"another client's removal of what was never shown":  {gone("unknown"), ended, code(200), gone("unknown")},
		"a careless client's removal":                       {exists(is("u", "1", terminating, held("a"))), model.Operation{Verb: model.Foreign, UID: "u", ResourceVersion: "1", Careless: true}, code(200), gone("u")},
		"a careless client's write":                         {exists(is("u", "1", label("x"), held("a"))), model.Operation{Verb: model.Foreign, ResourceVersion: "1", Careless: true}, ok(is("u", "2", value(""))), exists(is("u", "2", value("")))},
		"and finds nothing":                                 {after("8+", gone("u")), model.Operation{Verb: model.Remove, Awaits: "8"}, code(200), gone("u")},
		"and finds nothing, and the response is lost":       {after("8+", gone("u")), model.Operation{Verb: model.Remove, Awaits: "8", Finds: true}, lost, gone("u")},
		"and removes": {after("8+", exists(is("u", "2", held("a")))), model.Operation{Verb: model.Remove, Awaits: "8"}, code(200), gone("u")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			next, err := test.before.Step(test.operation, test.outcome)
			g.Expect(err).NotTo(HaveOccurred())
			expected := []model.State{test.after}
			if also, ok := alsoPossible[name]; ok {
				expected = append(expected, also)
			}
			g.Expect(next).To(ConsistOf(expected))
		})
	}
}

func TestStep_Refused(t *testing.T) {
	for name, test := range map[string]struct {
		before    model.State
		operation model.Operation
		outcome   model.Outcome
		broken    model.Rule
	}{
		"a second object of a name":                                    {exists(is("u", "1", terminating, held("a"))), create, ok(is("v", "2")), model.OneOfAName},
		"the uid of the object before":                                 {gone("u"), create, ok(is("u", "2")), model.NewUID},
		"an update of nothing":                                         {none, model.Operation{Verb: model.Update, Change: writes("2")}, ok(is("u", "2", value("2"))), model.MustExist},
		"a write that is lost":                                         {exists(is("u", "2")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, ok(is("u", "3", value("2"))), model.Stale},
		"a delete in spite of preconditions":                           {exists(is("u", "2")), model.Operation{Verb: model.Delete, ResourceVersion: "1"}, code(200), model.Preconditions},
		"a finalizer for a terminating object":                         {exists(is("u", "1", terminating, held("a"))), model.Operation{Verb: model.Patch, Change: holds("a", "b")}, ok(is("u", "2", terminating, held("a", "b"))), model.OnlyRemoved},
		"a held object that is gone":                                   {exists(is("u", "1", terminating, held("a"))), get, code(404), model.Held},
		"a lost finalizer":                                             {exists(is("u", "1", held("a"))), model.Operation{Verb: model.Patch, Change: writes("2")}, ok(is("u", "2", value("2"))), model.Current},
		"a refusal without a reason":                                   {exists(is("u", "1")), remove, code(409), model.NoReason},
		"an object that is gone by itself":                             {exists(is("u", "1")), get, code(404), model.Persists},
		"a stale read":                                                 {exists(is("u", "2", value("2"))), get, ok(is("u", "1")), model.Current},
		"a deleted object that is read":                                {gone("u"), get, ok(is("u", "1")), model.MustExist},
		"a change without a new version":                               {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("2")}, ok(is("u", "1", value("2"))), model.NewVersion},
		"a dry-run that shows something else":                          {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("2"), DryRun: true}, ok(is("u", "1")), model.Current},
		"the wrong refusal":                                            {none, remove, code(409), model.MustExist},
		"a list that lacks an object":                                  {exists(is("u", "1")), model.Operation{Verb: model.Select}, code(200), model.Selected},
		"a list with an object that is gone":                           {gone("u"), model.Operation{Verb: model.Select}, ok(is("u", "1")), model.Selected},
		"a list of an old version":                                     {exists(is("u", "2")), model.Operation{Verb: model.Select}, ok(is("u", "1")), model.Current},
		"a removal of another object":                                  {after("8+", exists(is("v", "3"))), model.Operation{Verb: model.Remove, Awaits: "8", UID: "u"}, code(200), model.Preconditions},
		"a removal of another version":                                 {after("8+", exists(is("u", "3"))), model.Operation{Verb: model.Remove, Awaits: "8", ResourceVersion: "2"}, code(200), model.Preconditions},
		"a write that shows another object":                            {exists(is("u", "1")), model.Operation{Verb: model.Patch, Change: writes("2")}, ok(is("v", "2", value("2"))), model.Current},
		"a read of another object":                                     {exists(is("u", "")), get, ok(is("v", "1")), model.Current},
		"the uid of the object before, in a read after a lost create":  {former("u", exists(is("", ""))), get, ok(is("u", "2")), model.NewUID},
		"the uid of the object before, in a write after a lost create": {former("u", exists(is("", ""))), model.Operation{Verb: model.Patch, Change: writes("2")}, ok(is("u", "2", value("2"))), model.NewUID},
		"a redirect":                                                   {exists(is("u", "1")), get, code(300), model.NoReason},
		"a client's finalizer of the collector that is gone":           {exists(is("u", "1", held(model.Orphan))), get, code(404), model.Held},
		"a held object that is refused":                                {exists(is("u", "1", held("a"))), remove, code(409), model.NoReason},
		"an update with the current version that is refused":           {exists(is("u", "1")), model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, code(422), model.NoReason},
		"an update of nothing that is a conflict":                      {none, model.Operation{Verb: model.Update, Change: writes("2")}, code(409), model.MustExist},
		"an update of a version of nothing":                            {none, model.Operation{Verb: model.Update, ResourceVersion: "1", Change: writes("2")}, ok(is("u", "2", value("2"))), model.MustExist},
		"an apply of a finalizer to a terminating object":              {exists(is("u", "1", terminating, held("a"))), model.Operation{Verb: model.Apply, Change: holds("a", "b")}, ok(is("u", "2", terminating, held("a", "b"))), model.OnlyRemoved},
		"another client's write over another version":                  {exists(is("u", "3")), wrote("1"), ok(is("u", "2", held("o/f"))), model.Current},
		"another client's write of another object":                     {exists(is("v", "1")), wrote("1"), ok(is("u", "2")), model.Current},
		"another client's write of nothing":                            {gone("u"), wrote("1"), ok(is("u", "2")), model.MustExist},
		"another client's create of what exists":                       {exists(is("u", "1")), wrote(""), ok(is("v", "2")), model.OneOfAName},
		"another client's create with a uid of before":                 {gone("u"), wrote(""), ok(is("u", "2")), model.NewUID},
		"another client's write that shows another state":              {exists(is("u", "2")), wrote("1"), ok(is("u", "2", held("o/f"))), model.Current},
		"another client undoes a deletion":                             {exists(is("u", "1", terminating, held("a"))), wrote("1"), ok(is("u", "2", held("a"))), model.StaysTerminating},
		"another client adds a finalizer to a terminating object":      {exists(is("u", "1", terminating, held("a"))), wrote("1"), ok(is("u", "2", terminating, held("a", "o/f"))), model.OnlyRemoved},
		"another client changes the run's annotation":                  {exists(is("u", "1")), wrote("1"), ok(is("u", "2", value("2"))), model.Current},
		"another client removes the run's finalizer":                   {exists(is("u", "1", held("a"))), wrote("1"), ok(is("u", "2")), model.Current},
		"a careless client adds a finalizer of the run":                {exists(is("u", "1")), model.Operation{Verb: model.Foreign, ResourceVersion: "1", Careless: true}, ok(is("u", "2", held("a"))), model.Current},
		"a careless client changes the run's label":                    {exists(is("u", "1", label("x"))), model.Operation{Verb: model.Foreign, ResourceVersion: "1", Careless: true}, ok(is("u", "2", label("y"))), model.Current},
		"another client's removal of a held object":                    {exists(is("u", "1", held("o/f"))), ended, code(200), model.Held},
		"another client's removal of what the run holds":               {exists(is("u", "1", terminating, held("a"))), ended, code(200), model.Held},
		"another client's removal of another version":                  {exists(is("u", "2")), ended, code(200), model.Current},
		"a delete that finds nothing to remove":                        {after("8+", gone("u")), model.Operation{Verb: model.Remove, Awaits: "8", Finds: true}, code(200), model.MustExist},
		"an apply that creates what exists":                            {exists(is("u", "1")), model.Operation{Verb: model.Apply, Change: writes("2")}, model.Outcome{Code: 201, Object: new(is("u", "2", value("2")))}, model.Created},
		"an apply of nothing that creates nothing":                     {none, model.Operation{Verb: model.Apply, Change: writes("1")}, ok(is("u", "1")), model.Created},
		"a removal that shows another object":                          {exists(is("u", "1")), remove, ok(is("v", "1")), model.Current},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := test.before.Step(test.operation, test.outcome)
			broken := (*model.Violation)(nil)
			g.Expect(errors.As(err, &broken)).To(BeTrue(), "%v", err)
			g.Expect(broken.Rule).To(Equal(test.broken), err.Error())
		})
	}
}

func TestStep_Awaits(t *testing.T) {
	_, err := exists(is("u", "1")).Step(model.Operation{Verb: model.Remove, Awaits: "8"}, code(200))
	NewWithT(t).Expect(err).To(MatchError("an earlier step of the operation comes first"))

	_, err = none.Step(ended, code(200))
	NewWithT(t).Expect(err).To(MatchError("an earlier step of the operation comes first"), "the object that another client removes was not yet created")
}

func TestObject_String(t *testing.T) {
	NewWithT(t).Expect(is("", "7", terminating, held("a")).String()).To(Equal("uid unknown, resourceVersion 7, terminating, finalizers a, value 1"))
	NewWithT(t).Expect(none.String()).To(Equal("no object"))
}
