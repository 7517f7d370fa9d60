// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom writes what a program was built of, as SPDX 2.3: the modules that Go has written into the program itself.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	unknown = "NOASSERTION"
	license = "Apache-2.0"
	program = common.ElementID("Program")
)

// Program is the subject of a bill of materials.
type Program struct {
	// Name is the name of the program, and Platform its platform, such as linux/amd64.
	Name, Platform, Version string
	// File is the program.
	File string
	// Created is when the bill was made, as it says.
	Created time.Time
}

// Of is the bill of a program. The same program has the same bill.
func Of(p Program) ([]byte, error) {
	info, err := buildinfo.ReadFile(p.File)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(p.File)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%s", p.Name, p.Version, strings.ReplaceAll(p.Platform, "/", "-"))
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://clusterhub.dev/spdx/" + name + "-" + sum,
		CreationInfo: &v2_3.CreationInfo{Created: p.Created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "clusterhub-hack-image"}, {CreatorType: "Organization", Creator: "The Clusterhub Authors"}}},
		Packages: []*v2_3.Package{{
			PackageName: p.Name, PackageSPDXIdentifier: program, PackageVersion: p.Version, PackageDownloadLocation: unknown,
			PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
			PackageLicenseConcluded: license, PackageLicenseDeclared: license, PackageCopyrightText: "Copyright The Clusterhub Authors.",
			PackageExternalReferences: []*v2_3.PackageExternalReference{purl(info.Main.Path, p.Version)},
			PrimaryPackagePurpose:     "APPLICATION", PackageComment: p.Platform,
		}},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, program)},
	}
	modules := append(slices.Clone(info.Deps), &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	for _, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		id := identifier(module.Path)
		doc.Packages = append(doc.Packages, &v2_3.Package{
			PackageName: module.Path, PackageSPDXIdentifier: id, PackageVersion: module.Version, PackageDownloadLocation: unknown,
			PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown, PackageComment: module.Sum,
			PackageExternalReferences: []*v2_3.PackageExternalReference{purl(module.Path, module.Version)}, PrimaryPackagePurpose: "LIBRARY",
		})
		doc.Relationships = append(doc.Relationships, relation(program, common.TypeRelationshipContains, id))
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent(" ")); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func relation(of common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.DocElementID{ElementRefID: of}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to}}
}

// purl is by what those who look for vulnerabilities know a module.
func purl(path, version string) *v2_3.PackageExternalReference {
	at := ""
	if version != "" {
		at = "@" + url.PathEscape(version)
	}
	return &v2_3.PackageExternalReference{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + path + at}
}

var other = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// identifier is the name of a module in the bill, in the letters that SPDX allows.
func identifier(path string) common.ElementID {
	return common.ElementID("Module-" + other.ReplaceAllString(path, "-"))
}
