package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/provider"
)

const (
	// removed replaces credentials.
	removed = "[redacted]"
	// shortestSecret is the minimum length of credentials that are replaced, in bytes: shorter ones would match in every word.
	shortestSecret = 4
)

// secrets are credentials that must not be shown. More of them become known when they are sent.
type secrets struct {
	mu    sync.Mutex
	known []string
	// replacer replaces them; nil when it is to be made.
	replacer *strings.Replacer
}

// add adds credentials.
func (s *secrets) add(more ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range more {
		if secret = strings.TrimSpace(secret); len(secret) >= shortestSecret && !slices.Contains(s.known, secret) {
			s.known, s.replacer = append(s.known, secret), nil
		}
	}
}

// replace replaces the credentials in a text, in every encoding.
func (s *secrets) replace(text string) string {
	s.mu.Lock()
	if s.replacer == nil {
		var all, pairs []string
		for _, secret := range s.known {
			all = append(all, encodings(secret)...)
		}
		for _, secret := range distinct(all) {
			pairs = append(pairs, secret, removed)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	replacer := s.replacer
	s.mu.Unlock()
	return replacer.Replace(text)
}

// Note adds the credential in the value of an Authorization header.
func (s *secrets) Note(authorization string) {
	_, credential, found := strings.Cut(authorization, " ")
	if !found {
		credential = authorization
	}
	s.add(credential)
	if decoded, err := base64.StdEncoding.DecodeString(credential); err == nil { // of basic authentication
		_, password, _ := strings.Cut(string(decoded), ":")
		s.add(password)
	}
}

// watched is a cluster whose clients note the credentials that they send.
type watched struct {
	provider.Cluster
	note func(authorization string)
}

// RESTConfig returns the configuration with a transport that notes credentials.
func (w watched) RESTConfig() *rest.Config {
	config := rest.CopyConfig(w.Cluster.RESTConfig())
	clusters.Noting(config, w.note)
	return config
}

// shapes are the formats of credentials of any origin: PEM blocks (also truncated ones, and with escaped line ends), JSON Web Tokens, tokens
// of EKS, GKE and kubeadm, values after the name of an authentication scheme, and the user of a URL. Paths in Go files are those of the
// machine that built the runner.
var shapes = []substitute{
	{[]string{"-----begin "}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)(-----END [A-Z0-9 ]+-----|$)`), removed},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[\w-]{8,}\.{1,2}[\w-]{8,}(\.[\w-]+)*`), removed},
	{[]string{"k8s-aws-v1."}, regexp.MustCompile(`\bk8s-aws-v1\.[\w=-]{8,}`), removed},
	{[]string{"ya29."}, regexp.MustCompile(`\bya29\.[\w.-]{8,}`), removed},
	{[]string{"."}, regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), removed},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)(\s|\+|%20)+([\w.~+/=%-]{16,}|[\w.~+/=%-]*\d[\w.~+/=%-]*)`), removed},
	{[]string{"authorization"}, regexp.MustCompile(`(?i)\b((proxy-)?authorization\W{1,6})(bearer|basic|negotiate)\s+[^\s"'\\\]]+`), "${1}" + removed},
	{[]string{"://"}, regexp.MustCompile(`(\w://)[^/\s@"']+@`), "${1}" + removed + "@"},
	{[]string{".go:"}, regexp.MustCompile(`(^|[\s"'(=])/([^\s:"']+/)?([\w.-]+\.go:\d+)`), "$1$3"},
}

// Credentials removes only credentials from a text.
func (r *Redactor) Credentials(text string) string {
	text = r.replace(text)
	lower := strings.ToLower(text)
	for _, shape := range shapes {
		text = shape.in(text, lower)
	}
	return text
}

var pair, percent = regexp.MustCompile(`..`), regexp.MustCompile(`%..`)

// encodings returns a secret as servers, errors and logs may write it.
func encodings(secret string) []string {
	content := []byte(secret)
	hexadecimal := hex.EncodeToString(content)
	all := append(escaped(secret), hexadecimal, strings.ToUpper(hexadecimal),
		base64.StdEncoding.EncodeToString(content), base64.URLEncoding.EncodeToString(content))
	for _, digits := range []string{hexadecimal, strings.ToUpper(hexadecimal)} {
		all = append(all, pair.ReplaceAllString(digits, `%$0`))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			all = append(all, withinBase64(encoding, content, offset))
		}
	}
	return all
}

// withinBase64 returns the characters that a content always has in the encoding of a longer one in which it has this offset, modulo 3.
func withinBase64(encoding *base64.Encoding, content []byte, offset int) string {
	const bitsEach = 6
	encoded := encoding.EncodeToString(append(make([]byte, offset), content...))
	first, end := (8*offset+bitsEach-1)/bitsEach, 8*(offset+len(content))/bitsEach
	return encoded[first:end]
}

// escaped returns a text as it is in texts of common formats: itself, and in JSON, Go, HTML and URLs. JSON may be quoted in JSON.
func escaped(text string) []string {
	quoted := func(text string) string {
		encoded, _ := json.Marshal(text) // of a string
		return string(encoded[1 : len(encoded)-1])
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	all := []string{text, html.EscapeString(text)}
	for _, form := range []string{quoted(text), plain.Replace(quoted(text)), strings.Trim(strconv.Quote(text), `"`), strings.Trim(strconv.QuoteToASCII(text), `"`)} {
		all = append(all, form, quoted(form), plain.Replace(quoted(form)))
	}
	for _, form := range []string{url.QueryEscape(text), url.PathEscape(text)} {
		all = append(all, form, percent.ReplaceAllStringFunc(form, strings.ToLower))
	}
	return distinct(all)
}

// distinct returns the texts that are not empty, without duplicates, the longest first.
func distinct(texts []string) []string {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(texts)
}
