package download

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // of the keys
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// The identity that signs Kubernetes' images, and who has attested it, from
// https://kubernetes.io/docs/tasks/administer-cluster/verify-signed-artifacts/.
const (
	signer       = "krel-trust@k8s-releng-prod.iam.gserviceaccount.com"
	signerIssuer = "https://accounts.google.com"
)

// sigstoreKeys are the keys of Sigstore's public services: trusted_root.json of its TUF repository.
//
//go:embed sigstore.json
var sigstoreKeys []byte

// keys are what signatures are verified with. Tests have their own.
type keys struct {
	material root.TrustedMaterial
	options  []verify.VerifierOption
}

// publicKeys returns the keys of Sigstore's public services. Certificates must be in a certificate log, and signatures in a transparency log
// with the time when they were made, because the certificates are valid for minutes.
func publicKeys() (keys, error) {
	material, err := root.NewTrustedRootFromJSON(sigstoreKeys)
	if err != nil {
		return keys{}, fmt.Errorf("read the keys of Sigstore: %w", err)
	}
	return keys{material, []verify.VerifierOption{
		verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1),
	}}, nil
}

// trusted returns the keys that signatures are verified with.
var trusted = publicKeys

// signedDigest returns the digest of a tagged image that Kubernetes' release process has signed.
func signedDigest(ctx context.Context, tag name.Tag, authorized http.RoundTripper) (digest.Digest, error) {
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(authorized)}
	image, err := remote.Get(tag, options...)
	if err != nil {
		return "", fmt.Errorf("find the image %s: %w", tag, err)
	}
	reference := tag.Digest(image.Digest.String())
	keys, err := trusted()
	if err != nil {
		return "", err
	}
	signatures, err := signaturesOf(reference, options)
	if err != nil {
		return "", fmt.Errorf("find the signatures of %s: %w", reference, err)
	}
	failures := []error{fmt.Errorf("%s has no valid signature of %s", tag, signer)}
	for _, signature := range signatures {
		err := signature.verify(keys, image.Digest)
		if err == nil {
			return asDigest(image.Digest), nil
		}
		failures = append(failures, err)
	}
	return "", joined(failures)
}

// joined joins errors in one line.
func joined(failures []error) error {
	texts := make([]string, 0, len(failures))
	for _, failure := range failures {
		texts = append(texts, strings.Join(strings.Fields(failure.Error()), " "))
	}
	return errors.New(strings.Join(texts, "; "))
}

// signature is a signature of an image.
type signature struct {
	bundle *bundle.Bundle
	// payload is what was signed instead of the image: a text that contains its digest. It is nil when the bundle has the digest itself.
	payload []byte
}

// verify returns an error unless the signature is that of an image by Kubernetes' release process.
func (s signature) verify(keys keys, image v1.Hash) error {
	verifier, err := verify.NewVerifier(keys.material, keys.options...)
	if err != nil {
		return err
	}
	identity, err := verify.NewShortCertificateIdentity(signerIssuer, "", signer, "")
	if err != nil {
		return err
	}
	wanted, err := hex.DecodeString(image.Hex)
	if err != nil {
		return err
	}
	artifact := verify.WithArtifactDigest(image.Algorithm, wanted)
	if s.payload != nil {
		var signed struct {
			Critical struct {
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				} `json:"image"`
			} `json:"critical"`
		}
		if err := json.Unmarshal(s.payload, &signed); err != nil || signed.Critical.Image.Digest != image.String() {
			return fmt.Errorf("it is the signature of another image: %q", signed.Critical.Image.Digest)
		}
		artifact = verify.WithArtifact(bytes.NewReader(s.payload))
	}
	_, err = verifier.Verify(s.bundle, verify.NewPolicy(artifact, verify.WithCertificateIdentity(identity)))
	return err
}

// bundleType begins the media type of a Sigstore bundle.
const bundleType = "application/vnd.dev.sigstore.bundle"

// signaturesOf returns the signatures of an image in a registry: Sigstore bundles that refer to the image, as cosign makes them since
// version 3, and images with a tag made from the digest, as it made them before.
func signaturesOf(image name.Digest, options []remote.Option) ([]signature, error) {
	signatures, err := attachedBundles(image, options)
	if err != nil {
		return nil, err
	}
	tag := image.Context().Tag(strings.Replace(image.DigestStr(), ":", "-", 1) + ".sig")
	old, err := remote.Image(tag, options...)
	if refused := (*transport.Error)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return signatures, nil
	}
	if err != nil {
		return nil, err
	}
	manifest, err := old.Manifest()
	if err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		payload, err := contentOf(old, layer.Digest)
		if err != nil {
			return nil, err
		}
		bundle, err := bundleOf(layer.Annotations, payload)
		if err != nil {
			return nil, fmt.Errorf("read the signature %s: %w", tag, err)
		}
		signatures = append(signatures, signature{bundle, payload})
	}
	return signatures, nil
}

// attachedBundles returns the Sigstore bundles that refer to an image.
func attachedBundles(image name.Digest, options []remote.Option) ([]signature, error) {
	index, err := remote.Referrers(image, options...)
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var signatures []signature
	for _, referrer := range list.Manifests {
		if !strings.HasPrefix(referrer.ArtifactType, bundleType) {
			continue
		}
		attached, err := remote.Image(image.Context().Digest(referrer.Digest.String()), options...)
		if err != nil {
			return nil, err
		}
		manifest, err := attached.Manifest()
		if err != nil {
			return nil, err
		}
		for _, layer := range manifest.Layers {
			content, err := contentOf(attached, layer.Digest)
			if err != nil {
				return nil, err
			}
			parsed := &bundle.Bundle{}
			if err := parsed.UnmarshalJSON(content); err != nil {
				return nil, fmt.Errorf("read the signature %s: %w", referrer.Digest, err)
			}
			signatures = append(signatures, signature{bundle: parsed})
		}
	}
	return signatures, nil
}

// largestSignature is the size above which nothing is taken for a signature.
const largestSignature = 1 << 20

// contentOf returns the content of a layer.
func contentOf(image v1.Image, digest v1.Hash) ([]byte, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, largestSignature))
	return content, errors.Join(err, reader.Close())
}

// logEntry is the entry of a signature in the transparency log, in the annotation of cosign before version 3.
type logEntry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// bundleOf makes a Sigstore bundle of the annotations of a signature of cosign before version 3
// (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md).
func bundleOf(annotations map[string]string, payload []byte) (*bundle.Bundle, error) {
	signed, err := base64.StdEncoding.DecodeString(annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		return nil, err
	}
	certificate, _ := pem.Decode([]byte(annotations["dev.sigstore.cosign/certificate"]))
	if certificate == nil {
		return nil, errors.New("it has no certificate")
	}
	var entry logEntry
	if err := json.Unmarshal([]byte(annotations["dev.sigstore.cosign/bundle"]), &entry); err != nil {
		return nil, fmt.Errorf("read its entry in the transparency log: %w", err)
	}
	logID, err := hex.DecodeString(entry.Payload.LogID)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(payload)
	return bundle.NewBundle(&protobundle.Bundle{
		MediaType: bundleType + "+json;version=0.1",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_X509CertificateChain{X509CertificateChain: &protocommon.X509CertificateChain{
				Certificates: []*protocommon.X509Certificate{{RawBytes: certificate.Bytes}},
			}},
			TlogEntries: []*protorekor.TransparencyLogEntry{{
				LogIndex:          entry.Payload.LogIndex,
				LogId:             &protocommon.LogId{KeyId: logID},
				KindVersion:       &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"},
				IntegratedTime:    entry.Payload.IntegratedTime,
				InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: entry.SignedEntryTimestamp},
				CanonicalizedBody: entry.Payload.Body,
			}},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     signed,
		}},
	})
}
