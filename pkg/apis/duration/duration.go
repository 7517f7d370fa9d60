// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package duration

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// maxText is the maximum length of the text of a duration. The longest that time.Duration writes has 25 characters.
const maxText = 64

// Duration is a length of time, in numbers with units, such as 90m or 1h30m. It is read back as it was written. The units are h, m, s, ms, us
// and ns, and the text has at most 64 characters.
type Duration struct {
	// Duration is the time.
	time.Duration `json:"-"`
	// text is the text that the duration was decoded from. It is used as long as it has the same value.
	text string `json:"-"`
}

func init() {
	// The generation counts, and controllers act, when a duration changes, and not when it is written in another way.
	utilruntime.Must(equality.Semantic.AddFuncs(Duration.Equal))
}

// Parse reads a duration and keeps the text.
func Parse(text string) (Duration, error) {
	if len(text) > maxText {
		return Duration{}, fmt.Errorf("a duration must have at most %d characters, such as 1h30m, not %d", maxText, len(text))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return Duration{}, fmt.Errorf("a duration must be numbers with units, such as 1h30m: %w", err)
	}
	return Duration{Duration: parsed, text: text}, nil
}

// Text returns the duration as it was written. One that a program has made or changed is written as time.Duration does.
func (d Duration) Text() string {
	if parsed, err := time.ParseDuration(d.text); err == nil && parsed == d.Duration {
		return d.text
	}
	return d.String()
}

// Equal reports whether both are as long, however they are written.
func (d Duration) Equal(other Duration) bool { return d.Duration == other.Duration }

// UnmarshalJSON reads the text of a duration. A null leaves the duration as it is.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration must be a string, such as 1h30m: %w", err)
	}
	parsed, err := Parse(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// MarshalJSON writes the text of the duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Text()) }

// ToUnstructured returns the text of the duration, as converters to unstructured objects and server-side apply want it.
func (d Duration) ToUnstructured() any { return d.Text() }

// OpenAPISchemaType returns the type in OpenAPI.
func (Duration) OpenAPISchemaType() []string { return []string{"string"} }

// OpenAPISchemaFormat returns the format in OpenAPI: none.
func (Duration) OpenAPISchemaFormat() string { return "" }
