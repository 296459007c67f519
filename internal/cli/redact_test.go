package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// indiscreet returns the kubeconfig of a server that refuses every request, and quotes how it was authenticated. A plugin gets the token.
func indiscreet(t *testing.T, token string) string {
	t.Helper()
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusUnauthorized)
		authorization := request.Header.Get("Authorization")
		_, _ = fmt.Fprintf(writer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"no: %s, %s"}`,
			authorization, base64.StdEncoding.EncodeToString([]byte(authorization)))
	}))
	t.Cleanup(server.Close)
	plugin := filepath.Join(t.TempDir(), "plugin")
	g.Expect(os.WriteFile(plugin, []byte("#!/bin/sh\n"+
		`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+token+`"}}'`), 0o700)).To(Succeed())
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return file
}

func TestRun_PluginTokens(t *testing.T) {
	const token = "open-sesame-of-a-plugin"
	for _, arguments := range []string{
		"cleanup", "cleanup --run dcx --namespace default", "fixture widgets.example.com", "collect --job j", "preflight",
		"explore --for 1s --report-dir DIR", "--suite finalizers --report-dir DIR",
	} {
		t.Run(arguments, func(t *testing.T) {
			g := NewWithT(t)
			var out, errOut bytes.Buffer
			dir := t.TempDir()
			given := strings.Fields(strings.ReplaceAll(arguments, "DIR", dir))

			code := Main(append(given, "--kubeconfig", indiscreet(t, token)), strings.NewReader(""), &out, &errOut)

			g.Expect(code).NotTo(BeZero())
			said := out.String() + errOut.String()
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, file := range files {
				content, err := os.ReadFile(file)
				g.Expect(err).NotTo(HaveOccurred())
				said += string(content)
			}
			g.Expect(strings.Contains(said, "[redacted]")).To(BeTrue(), "the server's refusal is quoted: %.600s", said)
			g.Expect(said).NotTo(ContainSubstring(token))
			g.Expect(said).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte(token))[:8]))
			g.Expect(said).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("Bearer " + token))[12:24]))
		})
	}
}
