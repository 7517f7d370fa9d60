// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive reads the archive of an edge service: a tar.gz of Kubernetes manifests in base64, as Open Horizon has it.
//
// What is in it was written by others, and reading it is bounded: in bytes, files, objects, depth, and in what it comes to once it
// is expanded. Nothing is written to a disk. Read says what is in the archive, and refuses what could not be delivered.
// Archive.Deliver has its objects with all namespaces in them rewritten to one.
//
// The rules, and why they are so: docs/design/edge.md.
package archive

// What an archive may be. An archive beyond a bound is refused at the point where that is noticed.
const (
	// MaxPacked is how many bytes it may have as a tar.gz. An object of the hub has little more room than that.
	MaxPacked = 512_000
	// MaxEncoded is how long it may be in base64, with the ends of lines that some tools add.
	MaxEncoded = 700_000
	// MaxExpanded is how many bytes it may have once it is decompressed, with everything that tar adds.
	MaxExpanded = 4 << 20
	// MaxEntries is how many entries tar may have: files, folders, and others.
	MaxEntries = 500
	// MaxName is how long the path of an entry may be, in bytes.
	MaxName = 255
	// MaxFolders is in how many folders a file may be, one in the other.
	MaxFolders = 10
	// MaxDocument is how long one YAML document may be, in bytes.
	MaxDocument = 1 << 20
	// MaxValues is how many values all documents may have together, those that aliases repeat included.
	MaxValues = 100_000
	// MaxDepth is how many lists and maps may be in each other in a document.
	MaxDepth = 64
	// MaxObjects is how many objects an archive may have.
	MaxObjects = 500
)
