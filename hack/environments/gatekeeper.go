package main

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/util/cert"

	"github.com/deletion-conformance/deletion-conformance/hack/internal/program"
)

// installGatekeeper is a part that runs Gatekeeper outside the cluster, with its webhook on loopback.
func installGatekeeper(ctx context.Context, site *site) error {
	err := site.createDefinitions(ctx, "gatekeeper", "github.com/open-policy-agent/gatekeeper/v3", "charts/gatekeeper/crds/*.yaml")
	if err != nil {
		return err
	}
	kubeconfig, err := site.cluster.AddUser("gatekeeper", "system:masters")
	if err != nil {
		return err
	}
	address, port, err := program.FreePort()
	if err != nil {
		return err
	}
	health, _, err := program.FreePort()
	if err != nil {
		return err
	}
	authority, err := writeCertificate(site.folder)
	if err != nil {
		return err
	}
	if err := site.apply(ctx, "gatekeeper", map[string]string{"URL": "https://" + address, "CABundle": authority}); err != nil {
		return err
	}
	return site.startProgram(ctx, program.Program{
		Binary: filepath.Join(bin, "gatekeeper"),
		Arguments: []string{
			"--kubeconfig=" + kubeconfig,
			"--host=127.0.0.1",
			"--port=" + strconv.Itoa(port),
			"--health-addr=" + health,
			"--cert-dir=" + site.folder,
			"--disable-cert-rotation",
			"--operation=webhook", "--operation=status", "--operation=generate",
			"--shutdown-delay=0",
		},
		Environment: []string{"POD_NAME=gatekeeper", "POD_NAMESPACE=gatekeeper-system"},
		Ready:       "http://" + health + "/readyz",
	})
}

// writeCertificate writes tls.crt and tls.key for a server on loopback, and returns the CA bundle of its clients, in base64.
func writeCertificate(folder string) (authority string, err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(certificate), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)
}
