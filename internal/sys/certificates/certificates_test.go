package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

// verified parses the certificate and verifies that the CA signed it for the usage.
func verified(t *testing.T, ca *CA, certificate, key []byte, usage x509.ExtKeyUsage, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Certificate())
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: name,
	}); err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestCA(t *testing.T) {
	ca, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Client("somebody", "one", "two")
	if err != nil {
		t.Fatal(err)
	}
	user := verified(t, ca, pair.Certificate, pair.Key, x509.ExtKeyUsageClientAuth, "").Subject
	if user.CommonName != "somebody" || !slices.Equal(user.Organization, []string{"one", "two"}) {
		t.Errorf("want somebody in the groups one and two, got %s", user)
	}

	certificateFile, keyFile, err := ca.Server("component", net.ParseIP("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, certificateErr := os.ReadFile(certificateFile)
	key, keyErr := os.ReadFile(keyFile)
	if certificateErr != nil || keyErr != nil {
		t.Fatal(certificateErr, keyErr)
	}
	verified(t, ca, certificate, key, x509.ExtKeyUsageServerAuth, "127.0.0.1")
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want a key for its owner alone, got %v, %v", info.Mode(), err)
	}
}

func TestForServer(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "webhook.example.com"} {
		certificate, bundle, err := ForServer(host)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle)
		for _, at := range []time.Time{time.Now(), time.Now().Add(-skew / 2)} {
			if _, err := certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at}); err != nil {
				t.Errorf("%s at %s: %v", host, at, err)
			}
		}
	}
}
