package environments

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strconv"

	"github.com/deletion-conformance/deletion-conformance/hack/survey/lab"
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
	address, port, err := lab.FreePort()
	if err != nil {
		return err
	}
	health, _, err := lab.FreePort()
	if err != nil {
		return err
	}
	authority, err := lab.WriteCertificate(site.folder, "127.0.0.1")
	if err != nil {
		return err
	}
	if err := site.apply(ctx, "gatekeeper", map[string]string{"URL": "https://" + address, "CABundle": base64.StdEncoding.EncodeToString(authority)}); err != nil {
		return err
	}
	return site.startProgram(ctx, lab.Program{
		Binary: filepath.Join(lab.Bin, "gatekeeper"),
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
