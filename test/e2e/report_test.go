package e2e

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/deletion-conformance/deletion-conformance/api/report/v1alpha1"
)

// inJUnit returns the ids in a run's junit.xml, with their outcomes.
func (o outcome) inJUnit(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(o.reports, "junit.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Cases []struct {
			Properties []struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			} `xml:"properties>property"`
			Skipped *struct{} `xml:"skipped"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, one := range document.Cases {
		end := "passed"
		switch {
		case one.Failure != nil:
			end = "failure"
		case one.Error != nil:
			end = "error"
		case one.Skipped != nil:
			end = "skipped"
		}
		for _, property := range one.Properties {
			if property.Name == "id" {
				named[property.Value] = end
			}
		}
	}
	return named
}

// lastLine matches the last line of a run.
var lastLine = regexp.MustCompile(`(\d+) passed, (\d+) failed(?:, (\d+) outdated known)?(?:, (\d+) failed as known)?(?:, (\d+) deviated)?(?:, (\d+) errored)?(?:, (\d+) interrupted)?, (\d+) skipped(?:, (\d+) not selected)?\n$`)

// counted checks that a run counts every behavior of the catalog once, regardless of its selection.
func (o outcome) counted(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	found := lastLine.FindStringSubmatch(o.out)
	g.Expect(found).NotTo(BeEmpty())
	total := 0
	for _, number := range found[1:] {
		n, err := strconv.Atoi(cmp.Or(number, "0")) // a count of zero may be missing
		g.Expect(err).NotTo(HaveOccurred())
		total += n
	}
	g.Expect(total).To(Equal(len(catalog(t))))
}

func TestRun_Filtered(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := shared.in(t)

	ran := startRun(t, "--kubeconfig", c.admin(t, "picky"), "--label-filter", "finalizers.held || graceful.node.early-exit").wait()

	g.Expect(ran.code).To(Equal(0))
	cluster := ran.cluster(t)
	g.Expect(reasons(cluster, v1alpha1.Passed)).To(HaveKey("finalizers.held"))
	g.Expect(reasons(cluster, v1alpha1.Skipped)).To(HaveKey("graceful.node.early-exit"))
	filtered := reasons(cluster, v1alpha1.Filtered)
	g.Expect(filtered).To(HaveLen(len(catalog(t)) - 2))
	for id, reason := range filtered {
		g.Expect(reason).NotTo(BeEmpty(), id)
	}
	inJUnit := ran.inJUnit(t)
	g.Expect(inJUnit).To(HaveKeyWithValue("finalizers.held", "passed"))
	g.Expect(inJUnit).To(HaveKeyWithValue("graceful.node.early-exit", "skipped"))
	g.Expect(inJUnit).NotTo(HaveKey("cascade.foreground.circle"))
	g.Expect(ran.out).To(MatchRegexp(`\nconformant\nreports: .*\n1 passed, 0 failed, 1 skipped, \d+ not selected\n$`))
}

// token creates a ServiceAccount that may do everything, and returns a token of it.
func (c *cluster) token(t *testing.T, name string) string {
	t.Helper()
	g := NewWithT(t)
	accounts := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: metav1.NamespaceDefault}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	request, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return request.Status.Token
}

// withoutCredentials returns a kubeconfig with only the address of the cluster.
func (c *cluster) withoutCredentials(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "nobody"}
	config.CurrentContext = "local"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, string(content))
}

func TestReport_NoTokens(t *testing.T) {
	t.Parallel()
	c := shared.in(t)
	good, wrong := c.token(t, "token-bearer"), "hunter2.hunter2.hunter2"
	for _, test := range []struct {
		name, token string
		code        int
	}{
		{"a good one", good, 0},
		{"a wrong one", wrong, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			ran := startRun(t, "--kubeconfig", c.withoutCredentials(t), "--token", test.token, "--verbose",
				"--label-filter", "watch.by-name || finalizers.held || "+holding, "--procs", "2")
			seen := ran.commandLinesOfWorkers()
			ended := ran.wait()

			g.Expect(ended.code).To(Equal(test.code))
			g.Expect(strings.Join(seen(), "\n")).NotTo(ContainSubstring(test.token), "other users of the machine can read command lines")
			said := ended.outputs(t)
			g.Expect(len(said)).To(BeNumerically(">=", 5))
			for where, text := range said {
				g.Expect(strings.Contains(text, test.token)).To(BeFalse(), where)
				g.Expect(strings.Contains(text, "Bearer")).To(BeFalse(), where)
			}
			if test.code == 0 {
				g.Expect(len(reasons(ended.cluster(t), v1alpha1.Passed))).To(Equal(5))
				g.Expect(seen()).To(ContainElement(ContainSubstring("worker")))
			}
		})
	}
}

// outputs returns the output and reports of a run.
func (o outcome) outputs(t *testing.T) map[string]string {
	t.Helper()
	said := map[string]string{"standard output": o.out, "standard error": o.errOut}
	err := filepath.WalkDir(o.reports, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		said[entry.Name()] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// commandLinesOfWorkers records the command lines of the workers until the runner has ended.
func (r *running) commandLinesOfWorkers() func() []string {
	var seen []string
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		own := strings.Join(r.command.Args, "\x00") + "\x00"
		tick := time.NewTicker(polling)
		defer tick.Stop()
		for {
			select {
			case <-r.ended:
				return
			case <-tick.C:
				for _, worker := range r.workers() {
					line := commandLine(worker)
					if line != own && !slices.Contains(seen, line) { // a worker that is about to start has the runner's command line
						seen = append(seen, line)
					}
				}
			}
		}
	}()
	return func() []string { <-noted; return seen }
}

// commandLine returns the command line of a process; empty when it has ended.
func commandLine(pid int) string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(content)
}
