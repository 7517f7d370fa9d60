// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// spdxType says what a file is, and what an artifact is.
const spdxType = "application/spdx+json"

// emptyType is the media type of the empty configuration of an artifact.
const emptyType = "application/vnd.oci.empty.v1+json"

// artifact is a file that refers to an image: what registries list as a referrer of that image.
type artifact struct {
	manifest []byte
	file     v1.Layer
}

// newArtifact makes one of a bill of materials.
func newArtifact(file []byte, title string, subject v1.Descriptor, annotations map[string]string) (v1.Image, error) {
	a := &artifact{file: static.NewLayer(file, spdxType)}
	descriptor, err := partial.Descriptor(a.file)
	if err != nil {
		return nil, err
	}
	descriptor.Annotations = map[string]string{"org.opencontainers.image.title": title}
	none := []byte("{}")
	digest, size, err := v1.SHA256(bytes.NewReader(none))
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: spdxType,
		Config: v1.Descriptor{MediaType: emptyType, Digest: digest, Size: size, Data: none},
		Layers: []v1.Descriptor{*descriptor},
		// Its platform and annotations are the index's to say.
		Subject:     &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: annotations,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

// RawConfigFile implements partial.CompressedImageCore.
func (a *artifact) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// MediaType implements partial.CompressedImageCore.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest implements partial.CompressedImageCore.
func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a *artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if has, err := a.file.Digest(); err != nil || has != digest {
		return nil, fmt.Errorf("the artifact has the file %s, and not %s: %w", has, digest, err)
	}
	return a.file, nil
}
