// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/clusterhub/clusterhub/hack/release/image/sbom"
)

// refName is the tag of what is in a layout.
const refName = "org.opencontainers.image.ref.name"

// layoutOf writes the images of a component to an OCI layout: an index with an image for each architecture, and for each image its bill of
// materials, which refers to it. It returns the digest of the index.
func (r release) layoutOf(dir string, programs []*program) (v1.Hash, error) {
	c := programs[0].component
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []v1.Image
	for _, p := range programs {
		img, err := r.image(p)
		if err != nil {
			return v1.Hash{}, err
		}
		platform := &v1.Platform{OS: "linux", Architecture: p.arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		bill, err := r.bill(p, img)
		if err != nil {
			return v1.Hash{}, err
		}
		bills = append(bills, bill)
	}
	annotated, ok := mutate.Annotations(index, r.labels(c)).(v1.ImageIndex)
	if !ok {
		return v1.Hash{}, fmt.Errorf("the index of %s has lost its kind", c.name)
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := to.AppendIndex(annotated, layout.WithAnnotations(map[string]string{refName: r.version})); err != nil {
		return v1.Hash{}, err
	}
	for _, bill := range bills {
		if err := to.WriteImage(bill); err != nil {
			return v1.Hash{}, err
		}
		descriptor, err := partial.Descriptor(bill)
		if err != nil {
			return v1.Hash{}, err
		}
		descriptor.ArtifactType = spdxType
		if err := to.AppendDescriptor(*descriptor); err != nil {
			return v1.Hash{}, err
		}
	}
	return annotated.Digest()
}

func (r release) bill(p *program, img v1.Image) (v1.Image, error) {
	text, err := sbom.Of(sbom.Program{Name: p.name, Platform: "linux/" + p.arch, Version: r.version, File: p.file, Created: r.created})
	if err != nil {
		return nil, fmt.Errorf("the bill of materials of %s: %w", p.file, err)
	}
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	return newArtifact(text, p.name+".spdx.json", *subject, map[string]string{"org.opencontainers.image.created": r.labels(p.component)["org.opencontainers.image.created"]})
}

// images has the contents of an OCI layout of ours.
type images struct {
	component, version string
	index              v1.ImageIndex
	bills              []v1.Image
}

// read reads the layouts of a folder, one for each component.
func read(dir string) (all []images, err error) {
	for _, c := range components {
		root, err := layout.ImageIndexFromPath(filepath.Join(dir, c.name))
		if err != nil {
			return nil, fmt.Errorf("the images of %s in %s: %w. Build them with `make images`", c.name, dir, err)
		}
		manifest, err := root.IndexManifest()
		if err != nil {
			return nil, err
		}
		found := images{component: c.name}
		for _, d := range manifest.Manifests {
			if d.MediaType == types.OCIImageIndex {
				found.version = d.Annotations[refName]
				found.index, err = root.ImageIndex(d.Digest)
			} else {
				var bill v1.Image
				bill, err = root.Image(d.Digest)
				found.bills = append(found.bills, bill)
			}
			if err != nil {
				return nil, err
			}
		}
		if found.index == nil || found.version == "" {
			return nil, fmt.Errorf("%s has no index of images with a version: build them with `make images`", filepath.Join(dir, c.name))
		}
		all = append(all, found)
	}
	return all, nil
}
