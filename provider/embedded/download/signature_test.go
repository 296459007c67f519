package download

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/deletion-conformance/deletion-conformance/provider/embedded/download/downloadtest"
)

// authority makes signatures as Sigstore's services do, and makes them trusted.
func authority(t *testing.T) *ca.VirtualSigstore {
	t.Helper()
	sigstore, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	trusted = func() (keys, error) {
		return keys{sigstore, []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}}, nil
	}
	t.Cleanup(func() { trusted = publicKeys })
	return sigstore
}

// unrecorded serves a version that is not recorded, whose binaries print a version, and returns the digests of its images.
func unrecorded(t *testing.T, version, printed string) (server *downloadtest.Server, digests map[string]string) {
	t.Helper()
	server = released(t)
	for _, image := range images[1:] {
		script := fmt.Sprintf("#!/bin/sh\necho Client Version: v%s\n", printed)
		server.AddImage(t, version, image.repository, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, []byte(script))
	}
	digests = server.Records[version].Images
	return server, digests
}

// sign makes a signature of an image and puts it into the registry.
type sign func(t *testing.T, sigstore *ca.VirtualSigstore, identity string, image name.Digest, signed string)

// signOld signs as cosign did before version 3: a text with a digest, in an image with a tag made from the digest.
func signOld(t *testing.T, sigstore *ca.VirtualSigstore, identity string, image name.Digest, signed string) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical": {"identity": {"docker-reference": "registry.k8s.io/kube-apiserver"}, "image": {"docker-manifest-digest": %q}, "type": "cosign container image signature"}}`, signed)
	entity, err := sigstore.Sign(identity, signerIssuer, payload)
	if err != nil {
		t.Fatal(err)
	}
	certificate, entry := materialOf(t, sigstore, entity)
	content, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	logged, err := json.Marshal(map[string]any{
		"SignedEntryTimestamp": entry.InclusionPromise.SignedEntryTimestamp,
		"Payload": map[string]any{
			"body": entry.CanonicalizedBody, "integratedTime": entry.IntegratedTime, "logIndex": entry.LogIndex, "logID": hex.EncodeToString(entry.LogId.KeyId),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer: static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{
			"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(content.Signature()),
			"dev.sigstore.cosign/certificate":    string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})),
			"dev.sigstore.cosign/bundle":         string(logged),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(image.Context().Tag(strings.Replace(image.DigestStr(), ":", "-", 1)+".sig"), signature); err != nil {
		t.Fatal(err)
	}
}

// signNew signs as cosign does since version 3: a statement about the image, in an artifact that refers to it.
func signNew(t *testing.T, sigstore *ca.VirtualSigstore, identity string, image name.Digest, signed string) {
	t.Helper()
	statement := fmt.Appendf(nil, `{"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": %q}}], "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {}}`,
		strings.TrimPrefix(signed, "sha256:"))
	entity, err := sigstore.Attest(identity, signerIssuer, statement)
	if err != nil {
		t.Fatal(err)
	}
	certificate, entry := materialOf(t, sigstore, entity)
	content, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	envelope := content.EnvelopeContent().(*bundle.Envelope).Envelope
	body, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	made, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: bundleType + "+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: certificate.Raw}},
			}},
			TlogEntries: []*protorekor.TransparencyLogEntry{entry},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			PayloadType: envelope.PayloadType, Payload: body, Signatures: []*protodsse.Signature{{Sig: content.Signature()}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := mutate.AppendLayers(mutate.ConfigMediaType(empty.Image, bundleType+".v0.3+json"), static.NewLayer(made, types.MediaType(bundleType+".v0.3+json")))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := remote.Head(image)
	if err != nil {
		t.Fatal(err)
	}
	referring := mutate.Subject(artifact, *subject).(v1.Image)
	digest, err := referring.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(image.Context().Digest(digest.String()), referring); err != nil {
		t.Fatal(err)
	}
}

// materialOf returns the certificate of a signature, and its entry in the transparency log with the promise to publish it.
func materialOf(t *testing.T, sigstore *ca.VirtualSigstore, entity *ca.TestEntity) (*x509.Certificate, *protorekor.TransparencyLogEntry) {
	t.Helper()
	content, err := entity.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	entry := entries[0].TransparencyLogEntry()
	promise, err := sigstore.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(entry.CanonicalizedBody), IntegratedTime: entry.IntegratedTime, LogIndex: entry.LogIndex,
		LogID: hex.EncodeToString(entry.LogId.KeyId),
	})
	if err != nil {
		t.Fatal(err)
	}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	var body struct{ Kind, APIVersion string }
	if err := json.Unmarshal(entry.CanonicalizedBody, &body); err != nil {
		t.Fatal(err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion}
	return content.Certificate(), entry
}

// signAll signs the images of a version, and returns where they are.
func signAll(t *testing.T, sign sign, server *downloadtest.Server, digests map[string]string, sigstore *ca.VirtualSigstore, identity string, signed func(string) string) {
	t.Helper()
	for repository, digest := range digests {
		image, err := name.NewDigest(server.Address + "/" + repository + "@" + digest)
		if err != nil {
			t.Fatal(err)
		}
		sign(t, sigstore, identity, image, signed(digest))
	}
	server.Requests()
}

func itself(digest string) string { return digest }

func TestBinaries_Signed(t *testing.T) {
	for name, sign := range map[string]sign{"before cosign 3": signOld, "since cosign 3": signNew} {
		t.Run(name, func(t *testing.T) {
			sigstore := authority(t)
			server, digests := unrecorded(t, "1.37.9", "1.37.9")
			signAll(t, sign, server, digests, sigstore, signer, itself)
			dir, err := Binaries(t.Context(), Options{Version: "1.37.9", Into: t.TempDir()}.at(server))
			if err != nil {
				t.Fatal(err)
			}
			if begun := begins(t, dir, "kube-apiserver"); begun != "#!/bin/sh" {
				t.Errorf("got %q", begun)
			}
			if begun := begins(t, dir, "etcd"); begun != "etcd" {
				t.Errorf("want the etcd of the version before, got %q", begun)
			}
		})
	}
}

func TestBinaries_NotSigned(t *testing.T) {
	for kind, sign := range map[string]sign{"before cosign 3": signOld, "since cosign 3": signNew} {
		for _, test := range []struct {
			name     string
			identity string
			signed   func(string) string
			printed  string
			strange  bool // the signature of other services
			want     string
		}{
			{"by somebody else", "somebody@example.com", itself, "1.37.9", false, "no valid signature of " + signer},
			{"another image", signer, func(string) string { return "sha256:" + strings.Repeat("0", 64) }, "1.37.9", false, "no valid signature of " + signer},
			{"by other services", signer, itself, "1.37.9", true, "no valid signature of " + signer},
			{"another version", signer, itself, "1.37.8", false, "the registry served another version of kube-apiserver"},
		} {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				sigstore := authority(t)
				server, digests := unrecorded(t, "1.37.9", test.printed)
				if test.strange {
					var err error
					if sigstore, err = ca.NewVirtualSigstore(); err != nil {
						t.Fatal(err)
					}
				}
				signAll(t, sign, server, digests, sigstore, test.identity, test.signed)
				refused(t, server, test.want)
			})
		}
	}
	t.Run("not at all", func(t *testing.T) {
		authority(t)
		server, _ := unrecorded(t, "1.37.9", "1.37.9")
		refused(t, server, "no valid signature of "+signer)
	})
	t.Run("no such version", func(t *testing.T) {
		authority(t)
		refused(t, released(t), "1.37.9")
	})
}

// refused fails the test unless the download fails with a line and leaves nothing that could be executed.
func refused(t *testing.T, server *downloadtest.Server, want string) {
	t.Helper()
	options := Options{Version: "1.37.9", Into: t.TempDir()}.at(server)
	if _, err := Binaries(t.Context(), options); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("want one line with %q, got: %v", want, err)
	}
	if _, err := os.Stat(filepath.Join(options.Into, "v1.37.9", "kube-apiserver")); err == nil {
		t.Error("want no API server")
	}
}

// TestPublicKeys checks that the keys of Sigstore's services can be read and are still valid.
func TestPublicKeys(t *testing.T) {
	keys, err := publicKeys()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys.material.FulcioCertificateAuthorities()) == 0 || len(keys.material.RekorLogs()) == 0 || len(keys.material.CTLogs()) == 0 {
		t.Error("want keys of all services")
	}
	for _, log := range keys.material.RekorLogs() {
		if !log.ValidityPeriodEnd.IsZero() && log.ValidityPeriodEnd.Before(time.Now()) {
			t.Errorf("the key of %s is no longer valid", log.BaseURL)
		}
	}
}
