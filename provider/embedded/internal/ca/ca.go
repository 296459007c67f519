// Package ca is the certificate authority of one local cluster: it signs the client certificates by which the API server
// knows its users, and the serving certificates of every component.
package ca

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

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// lifetime of a certificate: longer than anybody keeps a local cluster, and no longer.
const lifetime = 30 * 24 * time.Hour

// CA signs certificates.
type CA struct {
	certificate *x509.Certificate
	key         crypto.Signer
	dir         string
}

// Pair is a certificate with its key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// New makes a certificate authority that keeps its files in the directory.
func New(dir string) (*CA, error) {
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make the local cluster's CA: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "deletion-conformance"}, key)
	if err != nil {
		return nil, fmt.Errorf("make the local cluster's CA: %w", err)
	}
	ca := &CA{certificate: certificate, key: key, dir: dir}
	if err := os.WriteFile(ca.File(), ca.Certificate(), 0o600); err != nil {
		return nil, fmt.Errorf("write the local cluster's CA: %w", err)
	}
	return ca, nil
}

// Certificate is the CA's own certificate, in PEM.
func (c *CA) Certificate() []byte { return encode(c.certificate.Raw) }

// File is the file that holds the CA's own certificate.
func (c *CA) File() string { return filepath.Join(c.dir, "ca.crt") }

// Client makes a certificate for a user in groups.
func (c *CA) Client(user string, groups ...string) (Pair, error) {
	return c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server makes a certificate for a server at the address and writes it with its key beside the CA's own, as name.crt and
// name.key, whose paths it returns.
func (c *CA) Server(name string, address net.IP) (certificate, key string, err error) {
	pair, err := c.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", name},
		IPAddresses: []net.IP{address},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return "", "", err
	}
	return c.Write(name, pair)
}

// Write writes a pair beside the CA's own certificate, as name.crt and name.key, and returns their paths.
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

// sign completes the template, makes a key for it and signs it.
func (c *CA) sign(template *x509.Certificate) (Pair, error) {
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
