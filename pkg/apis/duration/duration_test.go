// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package duration

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

type holder struct {
	D Duration  `json:"d,omitempty"`
	P *Duration `json:"p,omitempty"`
}

// What is written comes back by every way that an object takes: JSON, CBOR, and as an unstructured object. metav1.Duration reads the same.
func TestDuration_RoundTrips(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5m": 5 * time.Minute, "24h": 24 * time.Hour, "300s": 5 * time.Minute, "5m0s": 5 * time.Minute, "1.5h": 90 * time.Minute, "0": 0, "0s": 0, "-1h": -time.Hour,
		"1h30m": 90 * time.Minute, "+90m": 90 * time.Minute, "010s": 10 * time.Second, "1us": time.Microsecond, "1µs": time.Microsecond,
	} {
		data, _ := json.Marshal(map[string]string{"d": text, "p": text})
		var read, again, unstructured holder
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if read.D.Duration != want || read.P.Duration != want {
			t.Errorf("%s is read as %s", text, read.D.Duration)
		}
		if got, _ := json.Marshal(read); string(got) != string(data) {
			t.Errorf("%s is written as %s", data, got)
		}
		binary, err := cbor.Marshal(read)
		if err == nil {
			err = cbor.Unmarshal(binary, &again)
		}
		if err != nil || again.D != read.D || *again.P != *read.P {
			t.Errorf("%s comes back from CBOR as %+v, %v", text, again, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&read)
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &unstructured)
		}
		if err != nil || content["d"] != text || unstructured.D != read.D {
			t.Errorf("%s is %v as an unstructured object, %v", text, content, err)
		}
		var upstream metav1.Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &upstream); err != nil || upstream.Duration != want {
			t.Errorf("upstream's clients read %s as %s, %v", text, upstream.Duration, err)
		}
	}
}

// What a program has made or changed is written as metav1.Duration writes it.
func TestDuration_FormatsAsUpstream(t *testing.T) {
	read, err := Parse("5m")
	if err != nil {
		t.Fatal(err)
	}
	read.Duration = time.Hour
	for _, d := range []Duration{read, {Duration: time.Hour}} {
		if got, want := d.Text(), (metav1.Duration{Duration: time.Hour}).Duration.String(); got != want {
			t.Errorf("it is written as %s, want %s", got, want)
		}
	}
	if got := (Duration{}).Text(); got != "0s" {
		t.Errorf("nothing is written as %s", got)
	}
}

func TestDuration_EqualInOtherUnits(t *testing.T) {
	minutes, _ := Parse("5m")
	seconds, _ := Parse("300s")
	longer, _ := Parse("301s")
	if !equality.Semantic.DeepEqual(holder{minutes, &minutes}, holder{seconds, &seconds}) {
		t.Error("300s is a change of 5m")
	}
	if equality.Semantic.DeepEqual(holder{D: minutes}, holder{D: longer}) {
		t.Error("301s is no change of 5m")
	}
}

func TestDuration_Invalid(t *testing.T) {
	for data, says := range map[string]string{
		`"5"`: "numbers with units", `""`: "numbers with units", `5`: "must be a string", `{}`: "must be a string", `"` + strings.Repeat("0", maxText) + `1s"`: "at most 64 characters",
		`"99999999999h"`: "numbers with units",
	} {
		d := Duration{Duration: time.Hour}
		if err := json.Unmarshal([]byte(data), &d); err == nil || !strings.Contains(err.Error(), says) || d.Duration != time.Hour {
			t.Errorf("%s: %v, %v, want %s", data, d, err, says)
		}
	}
	d := Duration{Duration: time.Hour}
	if err := json.Unmarshal([]byte("null"), &d); err != nil || d.Duration != time.Hour {
		t.Errorf("null: %v, %v", d, err)
	}
}
