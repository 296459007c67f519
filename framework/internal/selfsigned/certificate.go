// Package selfsigned makes the certificates of the servers that a worker runs for its specs: a webhook, and kubectl's
// proxy. Their keys are in memory only.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
)

// lifetime of a certificate: longer than any behaviour takes to judge, also where the clocks differ.
const lifetime = 24 * time.Hour

// Certificate makes a certificate for a host name or an address. It is returned once more in PEM, for those who are to trust it:
// it is the only one that they need. The key is elliptic: one of client-go's helper (RSA, two of them) takes a second of a busy
// processor.
func Certificate(host string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make a key for %s: %w", host, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-lifetime), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed})
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, bundle, nil
}
