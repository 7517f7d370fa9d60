// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// picturesEnv says that the pictures of the documentation are to be made anew.
const picturesEnv = "CLUSTERHUB_UPDATE_PICTURES"

// maxPicture keeps the repository small.
const maxPicture = 100_000

func TestPictures(t *testing.T) {
	h := fleet(t)
	folder := t.TempDir()
	if os.Getenv(picturesEnv) != "" {
		folder = filepath.Join(harness.Root, "docs", "images")
	}
	admin, member := serve(t, h, ""), dana(t, h)
	for _, p := range []struct {
		name          string
		served        *served
		path, text    string
		scheme        string
		width, height int64
	}{
		{"ui-clusters.png", admin, "/v/clusters?l=env", "toronto-1", "light", 1100, 760},
		{"ui-placement.png", admin, "/v/placements/middleware/cache", "cache-decision-1", "dark", 1100, 900},
		{"ui-rights.png", member, "/v/rights?n=dev-team", "See the set devset", "light", 1100, 640},
		{"ui-phone.png", member, "/v/sets/devset", "4 members", "light", 390, 780},
	} {
		b := open(t, p.served, "/")
		b.do("the size", chromedp.EmulateViewport(p.width, p.height))
		b.scheme(p.scheme)
		b.view(p.served, p.path, p.text)
		// The address and the files of this machine are of no use to readers.
		b.wait("the page is that of any hub", `(document.querySelector("#session").textContent = "on https://hub.example.com, context hub",
			document.querySelectorAll(".line code").forEach((e) => e.textContent = e.textContent.replace(/ --(kubeconfig|context|as|as-group)[ =].*$/, " --context hub")), true)`)
		file := filepath.Join(folder, p.name)
		b.screenshot(file)
		shrink(t, file)
		if about := harness.Must(os.Stat(file))(t); about.Size() > maxPicture {
			t.Errorf("%s has %d bytes: at most %d", p.name, about.Size(), maxPicture)
		}
	}
}

// shrink writes a picture anew with its 256 most frequent colors: a page of text has few.
func shrink(t *testing.T, file string) {
	t.Helper()
	picture := harness.Must(png.Decode(bytes.NewReader(harness.Must(os.ReadFile(file))(t))))(t)
	bounds, colors := picture.Bounds(), map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			colors[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	order := func(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
	frequent := slices.SortedFunc(maps.Keys(colors), func(a, b color.RGBA) int { return cmp.Or(colors[b]-colors[a], order(a)-order(b)) })
	palette := color.Palette{}
	for _, c := range frequent[:min(len(frequent), 256)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range colors {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)])
		}
	}
	out := bytes.Buffer{}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
