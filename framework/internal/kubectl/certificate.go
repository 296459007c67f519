package kubectl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
)

// certificateLifetime is longer than any run.
const certificateLifetime = 24 * time.Hour

// newCertificate makes a certificate for an address that vouches for itself. Its key is in memory only. It is returned once
// more in PEM, for those who are to trust it.
func newCertificate(address net.IP) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "deletion-conformance"},
		IPAddresses:  []net.IP{address},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(certificateLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed})
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, encoded, nil
}
