// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive reads the archive of an edge service: a tar.gz of Kubernetes manifests in base64, as in Open Horizon.
//
// The content is not trusted, and reading it is limited: in bytes, files, objects, depth, and in its size after expansion. Nothing is written to a
// disk. Read returns the content of the archive, and rejects content that cannot be delivered. Archive.Deliver returns its objects with all
// namespaces in them rewritten to one.
//
// The rules and their reasons are described in docs/design/edge.md.
package archive

// The limits of an archive. An archive that exceeds a limit is rejected as soon as that is noticed.
const (
	// MaxPacked is the maximum size of the tar.gz, in bytes. An object of the hub has little more room than that.
	MaxPacked = 512_000
	// MaxEncoded is the maximum length in base64, in bytes, including the line breaks that some tools add.
	MaxEncoded = 700_000
	// MaxExpanded is the maximum size after decompression, in bytes, including everything that tar adds.
	MaxExpanded = 4 << 20
	// MaxEntries is the maximum number of tar entries: files, folders, and others.
	MaxEntries = 500
	// MaxName is the maximum length of the path of an entry, in bytes.
	MaxName = 255
	// MaxFolders is the maximum depth of nested folders.
	MaxFolders = 10
	// MaxDocument is the maximum size of one YAML document, in bytes.
	MaxDocument = 1 << 20
	// MaxValues is the maximum number of values in all documents together, including those that aliases repeat.
	MaxValues = 100_000
	// MaxDepth is the maximum depth of nested lists and maps in a document.
	MaxDepth = 64
	// MaxObjects is the maximum number of objects in an archive.
	MaxObjects = 500
)
