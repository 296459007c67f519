// Package authority is the certificate authority of one local cluster: it signs the client certificates by which the
// API server knows its users, and the serving certificates of the cluster's other parts.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// lifetime of a certificate: longer than anybody keeps a local cluster, and no longer.
const lifetime = 30 * 24 * time.Hour

// Authority signs certificates. It is envtest's Authn, so the API server takes its users from it.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	folder      string
}

var _ envtest.Authn = &Authority{}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// New makes an authority that keeps its files in the folder.
func New(folder string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make the local cluster's certificate authority: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "deletion-conformance"}, key)
	if err != nil {
		return nil, fmt.Errorf("make the local cluster's certificate authority: %w", err)
	}
	authority := &Authority{certificate: certificate, key: key, folder: folder}
	if err := os.WriteFile(authority.File(), authority.Certificate(), 0o600); err != nil {
		return nil, fmt.Errorf("write the local cluster's certificate authority: %w", err)
	}
	return authority, nil
}

// Certificate is the authority's own certificate, in PEM.
func (a *Authority) Certificate() []byte { return encode(a.certificate.Raw) }

// File is the file that holds the authority's own certificate.
func (a *Authority) File() string { return filepath.Join(a.folder, "authority.crt") }

// Client makes a certificate for a user in groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server makes a certificate for a server at the address and writes it with its key beside the authority's own, as
// name.crt and name.key, whose paths it returns.
func (a *Authority) Server(name string, address net.IP) (certificate, key string, err error) {
	pair, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", name},
		IPAddresses: []net.IP{address},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return "", "", err
	}
	return a.Write(name, pair)
}

// Write writes a pair beside the authority's own certificate, as name.crt and name.key, and returns their paths.
func (a *Authority) Write(name string, pair Pair) (certificate, key string, err error) {
	certificate, key = filepath.Join(a.folder, name+".crt"), filepath.Join(a.folder, name+".key")
	if err := os.WriteFile(certificate, pair.Certificate, 0o600); err != nil {
		return "", "", fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(key, pair.Key, 0o600); err != nil {
		return "", "", fmt.Errorf("write the key of %s: %w", name, err)
	}
	return certificate, key, nil
}

// Configure makes the API server trust the authority for its clients.
func (a *Authority) Configure(_ string, arguments *envtest.Arguments) error {
	arguments.Set("client-ca-file", a.File())
	return nil
}

// Start has nothing to do.
func (a *Authority) Start() error { return nil }

// Stop has nothing to do: the files go with the folder of the cluster.
func (a *Authority) Stop() error { return nil }

// AddUser returns the configuration with the user's certificate in it.
func (a *Authority) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	pair, err := a.Client(user.Name, user.Groups...)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = pair.Certificate, pair.Key
	return config, nil
}

// sign completes the template, makes a key for it and signs it.
func (a *Authority) sign(template *x509.Certificate) (Pair, error) {
	name := template.Subject.CommonName
	key, err := newKey()
	if err != nil {
		return Pair{}, fmt.Errorf("make a key for %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = time.Now().Add(lifetime)
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return Pair{Certificate: encode(signed), Key: encodedKey}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encode(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: certificate})
}
