// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images to a registry, PREFIX/COMPONENT:VERSION, with the credentials that docker, podman or crane have for it. The bills of
// materials come before the tag: what has the tag is whole.
func push(ctx context.Context, dir, prefix string, say func(string, ...any)) error {
	all, err := read(dir)
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, i := range all {
		tag, err := name.NewTag(prefix + "/" + i.component + ":" + i.version)
		if err != nil {
			return fmt.Errorf("--prefix=%s: %w", prefix, err)
		}
		digest, err := i.index.Digest()
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(tag.Digest(digest.String()), i.index, options...); err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
		for _, bill := range i.bills {
			of, err := bill.Digest()
			if err != nil {
				return err
			}
			if err := remote.Write(tag.Digest(of.String()), bill, options...); err != nil {
				return fmt.Errorf("pushing the bill of materials of %s: %w", tag, err)
			}
		}
		if err := remote.Tag(tag, i.index, options...); err != nil {
			return fmt.Errorf("tagging %s: %w", tag, err)
		}
		say("%s@%s", tag, digest)
	}
	return nil
}
