// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// attacks are archives that have a high cost, or contain paths that lead out of the archive, with the error for each.
var attacks = map[string]struct {
	make func(t testing.TB) string
	want string
}{
	"more base64 than may be": {func(testing.TB) string { return strings.Repeat("A", MaxEncoded+1) }, "bytes of base64"},
	"more bytes than may be": {func(testing.TB) string {
		return base64.StdEncoding.EncodeToString(make([]byte, MaxPacked+1))
	}, "and may have 512000"},
	"not base64": {func(testing.TB) string { return "{}" }, "not base64"},
	"not gzip":   {func(testing.TB) string { return base64.StdEncoding.EncodeToString([]byte("plain")) }, "not gzip"},
	"nothing":    {func(testing.TB) string { return "" }, "not gzip"},
	"not tar":    {func(t testing.TB) string { return zip(t, bytes.Repeat([]byte("no tar "), 300)) }, "damaged"},
	"a gzip that ends early": {func(t testing.TB) string {
		whole := gzipOf(t, tarOf(t, content{"a.yaml", configMap}))
		return base64.StdEncoding.EncodeToString(whole[:len(whole)-12])
	}, "damaged"},
	"a gzip with a wrong checksum": {func(t testing.TB) string {
		whole := gzipOf(t, tarOf(t, content{"a.yaml", configMap}))
		whole[len(whole)-6] ^= 1
		return base64.StdEncoding.EncodeToString(whole)
	}, "damaged"},
	"a gzip bomb in a file": {func(t testing.TB) string {
		return pack(t, content{"a.yaml", strings.Repeat("#", 64<<20)})
	}, "when it is decompressed"},
	"a gzip bomb in a file that is not read": {func(t testing.TB) string {
		return pack(t, content{"zeros.bin", strings.Repeat("\x00", 64<<20)}, content{"a.yaml", configMap})
	}, "when it is decompressed"},
	"a gzip bomb after the end of tar": {func(t testing.TB) string {
		return zip(t, append(tarOf(t, content{"a.yaml", configMap}), make([]byte, 64<<20)...))
	}, "when it is decompressed"},
	"data after the end of tar": {func(t testing.TB) string {
		return zip(t, append(tarOf(t, content{"a.yaml", configMap}), "hidden"...))
	}, "after the end of its tar"},
	"a second gzip after the first": {func(t testing.TB) string {
		one := gzipOf(t, tarOf(t, content{"a.yaml", configMap}))
		return base64.StdEncoding.EncodeToString(append(one, one...))
	}, "after the end of its gzip"},
	"an endless stream of gzips": {func(t testing.TB) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat(gzipOf(t, nil), 20_000))
	}, "after the end of its gzip"},
	"a gzip in a gzip": {func(t testing.TB) string {
		inner := gzipOf(t, tarOf(t, content{"a.yaml", strings.Repeat("#", 64<<20)}))
		return pack(t, content{"inner.yaml", string(inner)})
	}, "not text in UTF-8"},
	"many files": {func(t testing.TB) string {
		files := make([]content, MaxEntries+1)
		for i := range files {
			files[i] = content{fmt.Sprintf("f%d.txt", i), ""}
		}
		return pack(t, files...)
	}, "more than 500 entries"},
	"many folders": {func(t testing.TB) string {
		var all []byte
		for i := range MaxEntries + 1 {
			all = append(all, block(fmt.Sprintf("d%d/", i), tar.TypeDir, 0)...)
		}
		return zip(t, append(all, make([]byte, 1024)...))
	}, "more than 500 entries"},
	"a long name": {func(t testing.TB) string {
		return pack(t, content{strings.Repeat("n", 100_000) + ".yaml", configMap})
	}, "may have 255"},
	"deep folders": {func(t testing.TB) string {
		return pack(t, content{strings.Repeat("a/", 12) + "a.yaml", configMap})
	}, "in 12 folders"},
	"an absolute path":      {func(t testing.TB) string { return pack(t, content{"/etc/a.yaml", configMap}) }, "must be relative"},
	"a path out of it":      {func(t testing.TB) string { return pack(t, content{"a/../../a.yaml", configMap}) }, "leads out of it"},
	"a path of Windows":     {func(t testing.TB) string { return pack(t, content{`..\a.yaml`, configMap}) }, "must be relative"},
	"a path for a terminal": {func(t testing.TB) string { return pack(t, content{"\x1b[31ma.yaml", configMap}) }, "not printable"},
	"a path for the eye": {func(t testing.TB) string {
		return pack(t, content{"a\u202elmay.exe", configMap})
	}, "not printable"},
	"a file twice": {func(t testing.TB) string {
		return pack(t, content{"a.yaml", configMap}, content{"./a.yaml", configMap})
	}, "each file needs a unique name"},
	"a link": {func(t testing.TB) string {
		return zip(t, append(block("a.yaml", tar.TypeSymlink, 0), make([]byte, 1024)...))
	}, "is a link"},
	"a hard link": {func(t testing.TB) string {
		return zip(t, append(block("a.yaml", tar.TypeLink, 0), make([]byte, 1024)...))
	}, "is a link"},
	"a device": {func(t testing.TB) string {
		return zip(t, append(block("a.yaml", tar.TypeBlock, 0), make([]byte, 1024)...))
	}, "neither a file nor a folder"},
	"a pipe": {func(t testing.TB) string {
		return zip(t, append(block("a.yaml", tar.TypeFifo, 0), make([]byte, 1024)...))
	}, "neither a file nor a folder"},
	"a stated size":     {func(t testing.TB) string { return zip(t, block("a.yaml", tar.TypeReg, 1<<32)) }, "when it is decompressed"},
	"a smaller size":    {func(t testing.TB) string { return zip(t, block("a.yaml", tar.TypeReg, 1<<20)) }, "damaged"},
	"a sparse file":     {sparse, "is sparse"},
	"an old sparse one": {func(t testing.TB) string { return zip(t, append(oldSparse(), make([]byte, 1024)...)) }, "neither a file nor a folder"},
	"long records of a header": {func(t testing.TB) string {
		records := record("comment", strings.Repeat("c", 3<<20))
		all := append(block("x", tar.TypeXHeader, int64(len(records))), padded(records)...)
		return zip(t, append(all, tarOf(t, content{"a.yaml", configMap})...))
	}, "damaged"},

	"a bomb of aliases":         {document(bomb(5)), "more values than an archive may have"},
	"a bomb of more":            {document(bomb(9)), "aliases repeat too much"},
	"a large bomb of aliases":   {document(bomb(200)), "levels of lists and maps"},
	"an alias of a long text":   {document("a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a, ", 2_000) + "*a]\n"), "aliases repeat too much"},
	"an alias of itself":        {document("a: &a\n  b: *a\n"), "refers to a value that contains it"},
	"an alias of a list in it":  {document("a: &a [*a]\n"), "refers to a value that contains it"},
	"an alias of nothing":       {document("password: *hunter2\n"), "quote strings"},
	"a merge of many":           {document("a: &a {b: 1}\n" + strings.Repeat("- <<: *a\n", 10)), "is not YAML"},
	"a huge document":           {func(t testing.TB) string { return pack(t, content{"a.yaml", "a: " + strings.Repeat("x", MaxDocument)}) }, "may have one of"},
	"many values":               {document("a: [" + strings.Repeat("1,", MaxValues) + "1]\n"), "more values"},
	"many lines":                {document(strings.Repeat("- 1\n", MaxValues)), "more values"},
	"many lists in one line":    {document(strings.Repeat("- ", 200_000)), "more values"},
	"many flow lists":           {document("a: " + strings.Repeat("[", 90_000)), "is not YAML"},
	"deep flow lists":           {document("a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "levels of lists and maps"},
	"deep block lists":          {document(strings.Repeat("- ", 5000) + "1\n"), "levels of lists and maps"},
	"many maps without a value": {document(strings.Repeat("? ", 200_000)), "more values"},
	"other ends of lines":       {document(strings.Repeat("a:\r", 300_000)), "more values"},
	"ends of lines of Unicode":  {document("- 1" + strings.Repeat("\u2028- 1", 100_000)), "more values"},
	"UTF-16":                    {document("\xff\xfea\x00:\x00 \x001\x00"), "not text in UTF-8"},
	"bytes that are no text":    {document("a: \xff\n"), "not text in UTF-8"},
	"zeros":                     {document(strings.Repeat("\x00", 900_000)), "not text in UTF-8"},
	"comments": {func(t testing.TB) string {
		files := make([]content, 20)
		for i := range files {
			files[i] = content{fmt.Sprintf("f%d.yaml", i), strings.Repeat("# c\n", 40_000)}
		}
		return pack(t, files...)
	}, "more values"},
	"small maps":                  {document("[" + strings.Repeat("{a: b},", 30_000) + "]\n"), "not an object"},
	"many keys":                   {document(manyKeys()), "not an object"},
	"many documents":              {document(strings.Repeat("---\n"+configMap, MaxObjects+1)), "more than 500 objects"},
	"a document after its end":    {document(configMap + "...\n" + configMap), "ends before its last line"},
	"a key twice":                 {document(configMap + "kind: Secret\n"), "a key twice"},
	"a key by merge and by alias": {document("&k kind: a\n*k : b\n"), "not a string"},
	"a key that is a list":        {document("[a, b]: c\n"), "not a string"},
	"a tag":                       {document("a: !!binary aGk=\n"), "has a tag"},
	"a tag of one's own":          {document("a: !!python/object:os.system ls\n"), "has a tag"},
	"no number":                   {document(configMap + "data: .nan\n"), "Kubernetes does not accept"},
	"a text":                      {document("hello"), "not an object"},
	"no kind":                     {document("apiVersion: v1\nmetadata: {name: a}\n"), "apiVersion and kind"},
	"a kind that is a list":       {document("apiVersion: v1\nkind: [a]\nmetadata: {name: a}\n"), "apiVersion and kind"},
	"no name":                     {document("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n"), "without metadata.name"},
	"metadata that is a list":     {document("apiVersion: v1\nkind: Pod\nmetadata: [a]\n"), "without metadata.name"},
	"a long kind":                 {document("apiVersion: v1\nkind: " + strings.Repeat("K", 64) + "\nmetadata: {name: a}\n"), "not a valid name in Kubernetes"},
	"a name for a terminal":       {document("apiVersion: v1\nkind: Pod\nmetadata: {name: \"\\e[31m\"}\n"), "not a valid name in Kubernetes"},
	"a namespace with large letters": {document("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ABC}\n"),
		"not a valid name of a namespace"},
	"a namespace that is a number":  {document("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 5}\n"), "not a string"},
	"a Namespace without a name":    {document("apiVersion: v1\nkind: Namespace\nmetadata: {name: A_B}\n"), "use small letters"},
	"only a Namespace":              {document("apiVersion: v1\nkind: Namespace\nmetadata: {name: abc}\n"), "no objects to deliver"},
	"nothing to read":               {func(t testing.TB) string { return pack(t, content{"README.md", "# hello"}) }, "no objects to deliver"},
	"subjects that are no list":     {document(binding("subjects: {kind: ServiceAccount}\n")), "subjects is not a list"},
	"a subject that is a text":      {document(binding("subjects: [admin]\n")), "an entry that is not a map"},
	"a subject without a kind":      {document(binding("subjects: [{name: admin}]\n")), "no kind"},
	"a user who is half an account": {document(binding("subjects: [{kind: User, name: 'system:serviceaccount:abc'}]\n")), "without a namespace"},
	"an object twice":               {document(configMap + "---\n" + strings.Replace(configMap, "metadata:", "metadata:\n  namespace: other", 1)), "twice"},
	"a definition of no scope":      {document("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"), "spec.scope"},
	"a list in a list": {document("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, metadata: {name: a}, items: []}]\n"),
		"lists cannot contain lists"},
	"a list of another kind": {document(configMap + "items: [{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: other}}]\n"), "with items"},
	"items that are no list": {document("apiVersion: v1\nkind: List\nitems: {a: b}\n"), "with items"},
	"an item that is a text": {document("apiVersion: v1\nkind: List\nitems: [a]\n"), "not an object"},
}

// document returns an archive of one file with the text.
func document(text string) func(testing.TB) string {
	return func(t testing.TB) string { return pack(t, content{"a.yaml", text}) }
}

func binding(subjects string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\n" + subjects
}

// bomb multiplies its content by ten at each level.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range levels {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d%s]\n", i+1, i+1, i, strings.Repeat(fmt.Sprintf(", *a%d", i), 9))
	}
	return b.String()
}

// manyKeys is as large as a document may be.
func manyKeys() string {
	var b strings.Builder
	for i := range 49_000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

// sparse declares 64 MiB of which nothing exists.
func sparse(t testing.TB) string {
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "a.yaml") +
		record("GNU.sparse.realsize", fmt.Sprint(64<<20))
	all := append(block("x", tar.TypeXHeader, int64(len(records))), padded(records)...)
	fragments := fmt.Sprintf("1\n%d\n0\n", 64<<20)
	all = append(all, block("GNUSparseFile.0/a.yaml", tar.TypeReg, int64(len(padded(fragments))))...)
	all = append(all, padded(fragments)...)
	return zip(t, append(all, make([]byte, 1024)...))
}

func oldSparse() []byte {
	b := block("a.yaml", tar.TypeGNUSparse, 0)
	copy(b[257:], "ustar  \x00")
	copy(b[483:], fmt.Sprintf("%011o\x00", 64<<20))
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// maxMemory is the maximum of memory that reading any archive may allocate in total, in bytes.
const maxMemory = 128 << 20

func TestRead_AttacksAreRejectedCheaply(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			encoded := attack.make(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			a, err := Read(encoded)
			runtime.ReadMemStats(&after)
			if err == nil || a != nil || !strings.Contains(err.Error(), attack.want) {
				t.Errorf("got %v, want an error with %q", err, attack.want)
			}
			if err != nil && (len(err.Error()) > 400 || strings.Contains(err.Error(), "hunter2") || strings.ContainsRune(err.Error(), '\x1b')) {
				t.Errorf("the error is long, or has what is in the archive: %s", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > maxMemory {
				t.Errorf("took %d MiB, may take %d", took>>20, maxMemory>>20)
			} else {
				t.Logf("took %d KiB: %v", took>>10, err)
			}
		})
	}
}

// An archive at its limits can be read, too.
func TestRead_LargestArchive(t *testing.T) {
	var b strings.Builder
	for i := range MaxObjects {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c%d\ndata:\n%s", i, strings.Repeat(fmt.Sprintf("  k%d: \"%d\"\n", i, i), 1))
	}
	a, err := Read(pack(t, content{strings.Repeat("a/", MaxFolders) + "a.yaml", b.String()}))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Contents.Objects) != MaxObjects {
		t.Errorf("got %d objects, want %d", len(a.Contents.Objects), MaxObjects)
	}
}
