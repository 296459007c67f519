package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// withPlugin returns a kubeconfig with a credential plugin, which is a script.
func (c *cluster) withPlugin(t *testing.T, script string, env ...clientcmdapi.ExecEnvVar) string {
	t.Helper()
	g := NewWithT(t)
	plugin := write(t, "#!/bin/sh\n"+script+"\n")
	g.Expect(os.Chmod(plugin, 0o700)).To(Succeed())
	config, err := clientcmd.LoadFromFile(c.withoutCredentials(t))
	g.Expect(err).NotTo(HaveOccurred())
	config.AuthInfos["nobody"].Exec = &clientcmdapi.ExecConfig{
		APIVersion: clientauthentication.SchemeGroupVersion.String(), Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Env: env,
	}
	content, err := clientcmd.Write(*config)
	g.Expect(err).NotTo(HaveOccurred())
	return write(t, string(content))
}

// credential is what a plugin prints.
func credential(t *testing.T, status clientauthentication.ExecCredentialStatus) string {
	t.Helper()
	content, err := json.Marshal(clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: "ExecCredential"}, Status: &status,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// lines counts the lines of a file.
func lines(t *testing.T, file string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), "\n")
}

// fewBehaviors need several workers, and one runs kubectl.
const fewBehaviors = holding + " || finalizers.held || kubectl.wait"

func TestCredentials_PluginOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	token, calls, environment := c.token(t, "plugin-once"), filepath.Join(t.TempDir(), "calls"), emptyEnvironment(t)
	printed := filepath.Join(t.TempDir(), "printed")
	g.Expect(os.WriteFile(printed, []byte(credential(t, clientauthentication.ExecCredentialStatus{Token: token})), 0o600)).To(Succeed())
	kubeconfig := c.withPlugin(t, fmt.Sprintf("echo >> %s; cat %s", calls, printed))

	ran := startRunIn(t, environment, "--kubeconfig", kubeconfig, "--procs", "4", "--label-filter", fewBehaviors, "--verbose")
	_, home, _ := strings.Cut(environment[1], "=")
	for ended := false; !ended; {
		select {
		case <-ran.ended:
			ended = true
		case <-time.After(polling):
		}
		g.Expect(filesWith(token, home, ran.reports)).To(BeEmpty())
		g.Expect(environmentsWith(token)).To(BeEmpty())
	}
	ended := ran.wait()

	g.Expect(ended.code).To(Equal(0))
	g.Expect(reasons(ended.cluster(t), v1alpha1.Passed)).To(HaveLen(len(strings.Split(fewBehaviors, "||"))))
	g.Expect(lines(t, calls)).To(Equal(1))
	g.Expect(ended.out + ended.errOut).NotTo(ContainSubstring(token))
}

// filesWith are the files below directories that contain a text.
func filesWith(text string, directories ...string) (files []string) {
	for _, directory := range directories {
		_ = filepath.WalkDir(directory, func(path string, _ fs.DirEntry, _ error) error {
			if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
				files = append(files, path)
			}
			return nil // files go meanwhile
		})
	}
	return files
}

// environmentsWith are the environments and command lines of processes that contain a text.
func environmentsWith(text string) (files []string) {
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
		matches, _ := filepath.Glob(pattern)
		for _, path := range matches {
			if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
				files = append(files, path)
			}
		}
	}
	return files
}

func TestCredentials_PluginRenewed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)
	dir := t.TempDir()
	users := []string{"plugin-even", "plugin-odd"}
	for i, name := range users {
		config, err := clientcmd.LoadFromFile(c.admin(t, name))
		g.Expect(err).NotTo(HaveOccurred())
		for _, user := range config.AuthInfos {
			printed := credential(t, clientauthentication.ExecCredentialStatus{
				ClientCertificateData: string(user.ClientCertificateData), ClientKeyData: string(user.ClientKeyData), ExpirationTimestamp: &metav1.Time{},
			})
			g.Expect(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(printed), 0o600)).To(Succeed())
		}
	}
	kubeconfig := c.withPlugin(t, fmt.Sprintf(
		`cd %s; echo >> calls; sed "s/\"expirationTimestamp\":null/\"expirationTimestamp\":\"$(date -u -d '2 seconds' +%%FT%%TZ)\"/" $(($(wc -l < calls) %% 2))`, dir))

	ended := startRun(t, "--kubeconfig", kubeconfig, "--procs", "4", "--label-filter", fewBehaviors, "--settle", "4s").wait()

	g.Expect(ended.code).To(Equal(0))
	g.Expect(reasons(ended.cluster(t), v1alpha1.Passed)).To(HaveLen(len(strings.Split(fewBehaviors, "||"))))
	g.Expect(lines(t, filepath.Join(dir, "calls"))).To(BeNumerically(">", 1))
	for _, user := range users {
		g.Expect(c.requests(t, user)).NotTo(BeEmpty(), user)
	}
}
