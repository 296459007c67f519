package visible_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"

	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/report/visible"
)

func TestText(t *testing.T) {
	for text, shown := range map[string]string{
		"": "",
		"plain: a::b, #1 ## [x]\n\ttext 日本語 ✅": "plain: a::b, #1 ## [x]\n\ttext 日本語 ✅",
		"ends\r\nof\rlines\u2028":              "ends\nof\\rlines\\u2028",
		"\x1b[2J\a\x00\x7f\u009b\u202e":        `\x1b[2J\a\x00\x7f\u009b\u202e`,
		"\xff\xe2\x80 \U000e0041":              `\xff\xe2\x80 \U000e0041`,
		"::add-mask::x":                        `:\u003aadd-mask::x`,
		"a\n \t\u00a0\u3000::error::x":         "a\n \t\u00a0\u3000:" + `\u003aerror::x`,
		"a ::error::x\r::error::x":             `a ::error::x\r::error::x`,
		"::":                                   `:\u003a`,
		"a ##[command]###[x] ##VSO[a.b]c":      `a ##\u005bcommand]###\u005bx] ##VSO\u005ba.b]c`,
		"##teamcity[message] ##octopus[x]":     `##teamcity\u005bmessage] ##octopus\u005bx]`,
	} {
		NewWithT(t).Expect(visible.Text(text)).To(Equal(shown), "%q", text)
	}
}

// acts matches what a terminal or a CI system interprets.
var acts = regexp.MustCompile(`(?m)^[\pZ\s]*::|(?i)##\w*\[`)

// checkHarmless checks that a text is valid, that nothing in it acts, and that it stays the same when it is escaped again.
func checkHarmless(t *testing.T, text string) {
	t.Helper()
	unseen := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) })
	if strings.ToValidUTF8(text, "") != text || unseen >= 0 || acts.MatchString(text) || visible.Text(text) != text {
		t.Errorf("%q acts", text)
	}
}

func FuzzText(f *testing.F) {
	for _, text := range reporttest.Hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := visible.Text(text)
		checkHarmless(t, shown)

		var out bytes.Buffer
		log := visible.NewLog(&out)
		for i := range len(text) {
			_, err := log.Write([]byte(text[i : i+1]))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}
		NewWithT(t).Expect(log.Close()).To(Succeed())
		NewWithT(t).Expect(out.String()).To(Equal(shown), "in parts")

		out.Reset()
		NewWithT(t).Expect(json.NewEncoder(visible.JSON(&out)).Encode(text)).To(Succeed())
		checkHarmless(t, out.String())
		var decoded string
		NewWithT(t).Expect(json.Unmarshal(out.Bytes(), &decoded)).To(Succeed())
		NewWithT(t).Expect(decoded).To(Equal(string([]rune(text))), "as it was received")
	})
}

func TestValue_CopiesDocument(t *testing.T) {
	g := NewWithT(t)
	whole := reporttest.WithText("\x1b")
	shown := visible.Value(whole)
	encoded, err := json.Marshal(shown)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(encoded)).To(And(ContainSubstring(`\\x1b`), Not(ContainSubstring(`\u001b`))))
	g.Expect(whole).To(Equal(reporttest.WithText("\x1b")))

	type part struct{ Text string }
	all := struct {
		part
		Pointer *part
		Any     any
		List    [][]string
		Map     map[string]any
		None    []string
	}{part{"\a"}, &part{"\a"}, part{"\a"}, [][]string{{"\a"}}, map[string]any{"\a": []any{"\a", 1}}, nil}
	copied := visible.Value(all)
	g.Expect(copied.part).To(Equal(part{`\a`}))
	g.Expect(*copied.Pointer).To(Equal(part{`\a`}))
	g.Expect(copied.Any).To(Equal(part{`\a`}))
	g.Expect(copied.List).To(Equal([][]string{{`\a`}}))
	g.Expect(copied.Map).To(Equal(map[string]any{`\a`: []any{`\a`, 1}}))
	g.Expect(copied.None).To(BeNil())
	g.Expect([]any{*all.Pointer, all.List[0][0], all.Map["\a"]}).To(Equal([]any{part{"\a"}, "\a", []any{"\a", 1}}))
}

func TestLog_PrintsOwnText(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	log := visible.NewLog(&out)
	g.Expect(visible.NewLog(log)).To(BeIdenticalTo(log))
	g.Expect(log.Print("[\x1b] ", visible.Own("\x1b[31mfailed\x1b[0m"), " \x1b\n")).To(Succeed())
	g.Expect(log.Command("::error::", "100%\r\n##[x]\n::error::")).To(Succeed())
	g.Expect(log.Close()).To(Succeed())
	g.Expect(out.String()).To(Equal("[\\x1b] \x1b[31mfailed\x1b[0m \\x1b\n::error::100%25%0A##\\u005bx]%0A:\\u003aerror::\n"))
}

func TestLog_StopsCommandsOnGitHub(t *testing.T) {
	for _, actions := range []string{"", "true"} {
		g := NewWithT(t)
		t.Setenv("GITHUB_ACTIONS", actions)
		var out bytes.Buffer
		log := visible.NewLog(&out)
		log.StopCommands()
		g.Expect(log.Close()).To(Succeed())
		g.Expect(out.String()).To(BeEmpty(), "nothing was printed")

		g.Expect(log.Command("::group::", "a")).To(Succeed())
		g.Expect(log.Print("text\nunended")).To(Succeed())
		g.Expect(log.Command("::endgroup::", "")).To(Succeed())
		g.Expect(log.Print("end\n")).To(Succeed())
		g.Expect(log.Close()).To(Succeed())
		if actions == "" {
			g.Expect(out.String()).To(Equal("::group::a\ntext\nunended::endgroup::\nend\n"))
			continue
		}
		token := regexp.MustCompile(`::stop-commands::(\w{20,})\n`).FindStringSubmatch(out.String())
		g.Expect(token).To(HaveLen(2))
		stop, resume := "::stop-commands::"+token[1]+"\n", "::"+token[1]+"::\n"
		g.Expect(out.String()).To(Equal("::group::a\n" + stop + "text\nunended\n" + resume + "::endgroup::\n" + stop + "end\n" + resume))
	}
}
