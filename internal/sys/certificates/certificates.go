// Package certificates creates the TLS certificates of a run: those of an embedded cluster, and those of the servers that a worker starts
// for its specs. Keys are elliptic, because an RSA key takes up to a second of a busy processor.
package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// lifetime is the validity of a certificate. No embedded cluster is kept for longer.
	lifetime = 30 * 24 * time.Hour
	// skew is the tolerance for clients whose clock is behind.
	skew = 24 * time.Hour
)

// CA signs certificates.
type CA struct {
	certificate *x509.Certificate
	key         crypto.Signer
	dir         string
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// New creates a certificate authority with files in the directory.
func New(dir string) (*CA, error) {
	ca, err := inMemory()
	if err != nil {
		return nil, err
	}
	ca.dir = dir
	if err := os.WriteFile(ca.File(), ca.Certificate(), 0o600); err != nil {
		return nil, fmt.Errorf("write the certificate of the CA: %w", err)
	}
	return ca, nil
}

// inMemory creates a certificate authority without files.
func inMemory() (*CA, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("create the key of a CA: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "deletion-conformance", NotBefore: time.Now().Add(-skew)}, key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate of a CA: %w", err)
	}
	return &CA{certificate: certificate, key: key}, nil
}

// ForServer creates a certificate for a server with this host name or IP address, and returns it with the PEM of its CA, which signs no
// other. The keys stay in memory.
func ForServer(host string) (tls.Certificate, []byte, error) {
	ca, err := inMemory()
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := serverTemplate(host)
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	pair, err := ca.sign(template)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	return certificate, ca.Certificate(), err
}

func serverTemplate(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

// Certificate is the CA's certificate, in PEM.
func (c *CA) Certificate() []byte { return encode(c.certificate.Raw) }

// File is the file of the CA's certificate.
func (c *CA) File() string { return filepath.Join(c.dir, "ca.crt") }

// Client creates a client certificate for a user in groups.
func (c *CA) Client(user string, groups ...string) (Pair, error) {
	return c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server creates a certificate for a server at the addresses and writes it with its key next to the CA's, as name.crt and name.key, and
// returns their paths.
func (c *CA) Server(name string, addresses ...net.IP) (certificate, key string, err error) {
	template := serverTemplate(name)
	template.DNSNames, template.IPAddresses = []string{"localhost", name}, addresses
	pair, err := c.sign(template)
	if err != nil {
		return "", "", err
	}
	return c.Write(name, pair)
}

// Write writes a pair next to the CA's certificate, as name.crt and name.key, and returns their paths.
func (c *CA) Write(name string, pair Pair) (certificate, key string, err error) {
	certificate, key = filepath.Join(c.dir, name+".crt"), filepath.Join(c.dir, name+".key")
	if err := os.WriteFile(certificate, pair.Certificate, 0o600); err != nil {
		return "", "", fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(key, pair.Key, 0o600); err != nil {
		return "", "", fmt.Errorf("write the key of %s: %w", name, err)
	}
	return certificate, key, nil
}

// sign completes the template, creates a key for it and signs it.
func (c *CA) sign(template *x509.Certificate) (Pair, error) {
	name := template.Subject.CommonName
	key, err := newKey()
	if err != nil {
		return Pair{}, fmt.Errorf("create a key for %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("create a certificate for %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	template.NotBefore = c.certificate.NotBefore
	template.NotAfter = time.Now().Add(lifetime)
	signed, err := x509.CreateCertificate(rand.Reader, template, c.certificate, key.Public(), c.key)
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
