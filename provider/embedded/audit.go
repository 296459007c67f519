package embedded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// The audit policies record the metadata of requests, once, after the response: of every request if the user wants the log, else only of
// deletes of ConfigMaps, which behaviors about the audit log use.
const (
	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
`
	everyRequest   = "- {level: Metadata}\n"
	configMapsOnly = "- {level: Metadata, verbs: [delete], resources: [{group: \"\", resources: [configmaps]}]}\n- {level: None}\n"
)

// auditLog is the path of the audit log.
func (c *instance) auditLog() (string, error) {
	if c.settings.auditLog == "" {
		return c.dir.Path("audit.log"), nil
	}
	path, err := filepath.Abs(c.settings.auditLog)
	if err != nil {
		return "", fmt.Errorf("find the audit log: %w", err)
	}
	return path, nil
}

// auditFlags make the API server write the audit log.
func (c *instance) auditFlags() ([]string, error) {
	rules := configMapsOnly
	if c.settings.auditLog != "" {
		rules = everyRequest
	}
	policy, err := c.dir.Write("audit-policy.yaml", []byte(auditPolicy+rules))
	if err != nil {
		return nil, err
	}
	log, err := c.auditLog()
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, err
}

// auditEvents returns the lines of the audit log about an object.
func (c *instance) auditEvents(namespace, name string) ([]byte, error) {
	path, err := c.auditLog()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var found []byte
	for line := range bytes.Lines(content) {
		if bytes.Contains(line, fmt.Appendf(nil, `"namespace":%q,"name":%q`, namespace, name)) {
			found = append(found, line...)
		}
	}
	return found, nil
}
