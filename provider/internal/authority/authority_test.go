package authority

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// verified is the certificate, once the authority is found to have signed it for the usage.
func verified(t *testing.T, authority *Authority, certificate, key []byte, usage x509.ExtKeyUsage, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: name,
	}); err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestAuthoritySignsUsersAndServers(t *testing.T) {
	authority, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := authority.AddUser(envtest.User{Name: "somebody", Groups: []string{"one", "two"}}, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	user := verified(t, authority, config.CertData, config.KeyData, x509.ExtKeyUsageClientAuth, "").Subject
	if user.CommonName != "somebody" || !slices.Equal(user.Organization, []string{"one", "two"}) {
		t.Errorf("want somebody in the groups one and two, got %s", user)
	}

	certificateFile, keyFile, err := authority.Server("part", net.ParseIP("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, certificateErr := os.ReadFile(certificateFile)
	key, keyErr := os.ReadFile(keyFile)
	if certificateErr != nil || keyErr != nil {
		t.Fatal(certificateErr, keyErr)
	}
	verified(t, authority, certificate, key, x509.ExtKeyUsageServerAuth, "127.0.0.1")
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want a key for its owner alone, got %v, %v", info.Mode(), err)
	}
}
