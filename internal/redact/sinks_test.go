package redact_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
	"github.com/deletion-conformance/deletion-conformance/internal/engine/preflight"
	"github.com/deletion-conformance/deletion-conformance/internal/kube/clusters"
	"github.com/deletion-conformance/deletion-conformance/internal/progress"
	"github.com/deletion-conformance/deletion-conformance/internal/redact"
	"github.com/deletion-conformance/deletion-conformance/internal/report/formats"
	"github.com/deletion-conformance/deletion-conformance/internal/report/github"
	"github.com/deletion-conformance/deletion-conformance/internal/report/otlp"
	"github.com/deletion-conformance/deletion-conformance/internal/report/reporttest"
	"github.com/deletion-conformance/deletion-conformance/internal/sonobuoy"
)

// alphabet are characters of credentials. Some of them look different in JSON, URLs, HTML or base64.
var alphabet = []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + `-_.~+/=%&?#"'\<>:;@$!*()[]{}|^` + "äß€\n\t ")

// shortest is the length of the shortest generated secrets. Shorter ones are redacted, too, but other text may contain them by chance.
const shortest = 8

// generator generates secrets.
type generator struct{ *rand.Rand }

// text returns a secret of the first characters of the alphabet.
func (g generator) text(characters int) string {
	var text strings.Builder
	text.WriteRune(alphabet[g.IntN(26)]) // what surrounds a secret is trimmed
	for range shortest - 2 + g.IntN(60) {
		text.WriteRune(alphabet[g.IntN(characters)])
	}
	text.WriteRune(alphabet[g.IntN(26)])
	return text.String()
}

// password returns a secret of any characters, and token one that a header can contain.
func (g generator) password() string { return g.text(len(alphabet)) }
func (g generator) token() string    { return g.text(62 + 7) }

// kubeconfig returns a cluster with generated credentials, and the credentials by their kind.
func (g generator) kubeconfig(t *testing.T) (clusters.Cluster, map[string]string) {
	t.Helper()
	line := func() string {
		content := make([]byte, 48)
		for i := range content {
			content[i] = byte(g.IntN(256))
		}
		return base64.StdEncoding.EncodeToString(content)
	}
	secrets := map[string]string{
		"token": g.token(), "token file": g.token(), "password": g.password(), "line of the key": line(), "line of the key file": line(),
		"provider": g.password(), "variable of the plugin": g.password(), "argument": g.password(), "assigned argument": g.password(),
		"password of the server's URL": g.password(), "password of the proxy's URL": g.password(), "password of the environment's proxy": g.password(),
		"header for the collector": g.token(),
	}
	pem := func(lines ...string) string {
		return "-----BEGIN PRIVATE KEY-----\n" + strings.Join(lines, "\n") + "\n-----END PRIVATE KEY-----\n"
	}
	secrets["key"] = strings.TrimSpace(pem(line(), secrets["line of the key"]))
	dir := t.TempDir()
	for name, content := range map[string]string{"token": secrets["token file"] + "\n", "key": pem(line(), secrets["line of the key file"])} {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
	}
	address := func(host, password string) string {
		return (&url.URL{Scheme: "https", Host: host, User: url.UserPassword("me", password)}).String()
	}
	t.Setenv("HTTPS_PROXY", address("proxy.example", secrets["password of the environment's proxy"]))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key="+url.PathEscape(secrets["header for the collector"]))
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:   address("api.example", secrets["password of the server's URL"]),
		ProxyURL: address("proxy.example", secrets["password of the proxy's URL"]),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		Token: secrets["token"], TokenFile: filepath.Join(dir, "token"), Username: "me", Password: secrets["password"],
		ClientKeyData: []byte(secrets["key"] + "\n"), ClientKey: filepath.Join(dir, "key"),
		AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"refresh-token": secrets["provider"]}},
		Exec: &clientcmdapi.ExecConfig{
			Command: "login", Args: []string{"get-token", "--client-secret", secrets["argument"], "--id=" + secrets["assigned argument"]},
			Env: []clientcmdapi.ExecEnvVar{{Name: "X", Value: secrets["variable of the plugin"]}},
		},
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	content, err := clientcmd.Write(*config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return clusters.Cluster{Name: "c", Kubeconfig: content}, secrets
}

// forms returns a secret as servers and errors may quote it.
func (g generator) forms(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		panic(err) // of a string
	}
	again, _ := json.Marshal(string(quoted))
	digits := hex.EncodeToString([]byte(secret))
	percent := regexp.MustCompile("..").ReplaceAllString(digits, "%$0")
	all := []string{
		secret, string(quoted), string(again), fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), html.EscapeString(secret),
		url.QueryEscape(secret), url.PathEscape(secret), strings.ToLower(url.QueryEscape(" ")) + secret,
		digits, strings.ToUpper(digits), percent, strings.ToUpper(percent),
	}
	for offset := range 3 {
		around := g.text(62)
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, encoding.EncodeToString([]byte(around[:offset]+secret+around[:g.IntN(3)])))
		}
	}
	return all
}

var (
	inBase64  = regexp.MustCompile(`[\w+/-]{8,}`)
	inHex     = regexp.MustCompile(`[0-9a-fA-F]{8,}`)
	inPercent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	inUnicode = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)
)

// readings returns a text, and everything that it is in other encodings, with what is compressed in it.
func readings(text string) []string {
	all := []string{text, inPercent.ReplaceAllStringFunc(text, func(found string) string {
		decoded, _ := hex.DecodeString(found[1:])
		return string(decoded)
	})}
	unquoted := text
	for range 3 { // JSON in JSON in JSON
		unquoted = inUnicode.ReplaceAllStringFunc(unquoted, func(found string) string {
			var decoded string
			_ = json.Unmarshal([]byte(`"`+found+`"`), &decoded)
			return decoded
		})
		unquoted = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(unquoted)
		all = append(all, unquoted, html.UnescapeString(unquoted))
	}
	var decoded []string
	for _, run := range inHex.FindAllString(text, -1) {
		for from := range 2 {
			content, _ := hex.DecodeString(run[from : from+(len(run)-from)/2*2])
			decoded = append(decoded, string(content))
		}
	}
	for _, run := range inBase64.FindAllString(text, -1) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for from := range 4 {
			end := len(run)
			if (end-from)%4 == 1 {
				end--
			}
			content, _ := base64.RawStdEncoding.DecodeString(run[from:end])
			decoded = append(decoded, string(content))
			if unzipped, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
				content, _ := io.ReadAll(unzipped)
				all = append(all, readings(string(content))...)
			}
		}
	}
	return append(all, strings.Join(decoded, "\x00"))
}

// sinks returns what a report is in every sink, by its name.
func sinks(t *testing.T, redactor *redact.Redactor, whole v1alpha1.Report) map[string]string {
	t.Helper()
	g := NewWithT(t)
	found := map[string]string{}
	clean, err := redactor.Report(whole)
	g.Expect(err).NotTo(HaveOccurred())

	t.Setenv(sonobuoy.ResultsVariable, t.TempDir())
	plugin, err := sonobuoy.Current("--sonobuoy")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(formats.Write(plugin.ReportDir(), clean)).To(Succeed())
	files, err := filepath.Glob(filepath.Join(plugin.ReportDir(), "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(5))
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		found[filepath.Base(file)] = string(content)
	}
	g.Expect(plugin.Submit()).To(Succeed())
	packed, err := os.Open(filepath.Join(os.Getenv(sonobuoy.ResultsVariable), "results.tar.gz"))
	g.Expect(err).NotTo(HaveOccurred())
	unpacked, err := gzip.NewReader(packed)
	g.Expect(err).NotTo(HaveOccurred())
	archive, err := io.ReadAll(unpacked)
	g.Expect(err).NotTo(HaveOccurred())
	found["results of Sonobuoy"] = string(archive)

	var sent bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = sent.ReadFrom(request.Body)
	}))
	defer collector.Close()
	endpoint, err := otlp.ParseEndpoint(collector.URL)
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv("HTTPS_PROXY", "")
	g.Expect(endpoint.Send(t.Context(), clean, trace.SpanContext{})).To(Succeed())
	found["trace"] = sent.String()

	for name, variable := range map[string]string{"output": "X", "output on GitHub": "GITHUB_ACTIONS", "output on GitLab": "GITLAB_CI"} {
		t.Setenv(variable, "true")
		var out bytes.Buffer
		shown := redactor.Progress(progress.New(&out, 2, 1, progress.Verbose))
		for _, cluster := range whole.Clusters {
			shown.SettingUp(cluster.Name)
			shown.SetUp(cluster, 1)
			cluster.Problem = ""
			shown.SetUp(cluster, 1)
			shown.Slow(cluster.Name, preflight.Latency{}, time.Second)
			for _, result := range cluster.Results {
				shown.Began(cluster.Name, result.ID)
				shown.Retrying(cluster.Name, result)
				shown.Ended(cluster.Name, result)
			}
			shown.TearingDown(cluster.Name)
		}
		g.Expect(shown.Close()).To(Succeed())
		found[name] = out.String()
		g.Expect(os.Unsetenv(variable)).To(Succeed())
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	for _, variable := range []string{"GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"} {
		t.Setenv(variable, filepath.Join(t.TempDir(), variable))
	}
	g.Expect(github.Publish(clean)).To(Succeed())
	for _, variable := range []string{"GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"} {
		content, err := os.ReadFile(os.Getenv(variable))
		g.Expect(err).NotTo(HaveOccurred())
		found[variable] = string(content)
	}
	g.Expect(os.Unsetenv("GITHUB_ACTIONS")).To(Succeed())

	text := whole.Clusters[0].Problem
	found["error"] = redactor.Error(errors.New(text)).Error()
	var out bytes.Buffer
	_, err = io.WriteString(redactor.Writer(&out), text)
	g.Expect(err).NotTo(HaveOccurred())
	found["writer"] = out.String()
	return found
}

func TestSinks_Encodings(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g, random := NewWithT(t), generator{rand.New(rand.NewPCG(seed, 1))}
			cluster, secrets := random.kubeconfig(t)
			named := []clusters.Cluster{cluster}
			redactor, err := redact.For(named, redact.Scope{Names: seed%2 == 1})
			g.Expect(err).NotTo(HaveOccurred())
			secrets["sent token"], secrets["sent password"] = random.token(), random.password()
			redactor.Note("Bearer " + secrets["sent token"])
			redactor.Note("Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secrets["sent password"])))
			var said, all []string
			for _, kind := range slices.Sorted(maps.Keys(secrets)) {
				forms := random.forms(secrets[kind])
				said, all = append(said, forms[random.IntN(len(forms))]), append(all, forms...)
			}
			whole := reporttest.WithText("said: " + strings.Join(said, " | "))
			for i := range whole.Clusters[0].Results {
				whole.Clusters[0].Results[i].Statement = "a statement" // which is not from a cluster
			}

			found := sinks(t, redactor, whole)
			found["every form"] = redactor.Text(strings.Join(all, " | "))
			for sink, text := range found {
				g.Expect(text).NotTo(BeEmpty(), sink)
				for _, reading := range readings(text) {
					for kind, secret := range secrets {
						if strings.Contains(reading, secret) {
							t.Errorf("the %s is in %s: %q", kind, sink, secret)
						}
					}
				}
			}
		})
	}
}

func TestRedactor_ShortCredentials(t *testing.T) {
	g := NewWithT(t)
	redactor := &redact.Redactor{}
	redactor.Note("Bearer abcd")
	redactor.Note("Bearer xyz")
	g.Expect(redactor.Text("abcd xyz YWJjZA== eGFiY2R4 61626364")).To(Equal("[redacted] xyz [redacted] eG[redacted]R4 [redacted]"))
}
