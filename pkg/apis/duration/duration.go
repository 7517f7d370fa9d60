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

// maxText is the maximum length of the text of a duration. The longest text that time.Duration returns has 25 characters.
const maxText = 64

// Duration is a length of time as numbers with units, such as 90m or 1h30m. The server returns it in the form in which it was written. The
// units are h, m, s, ms, us and ns, and the text has at most 64 characters.
type Duration struct {
	// Duration is the length of time.
	time.Duration `json:"-"`
	// text is the text from which the duration was decoded. Text returns it as long as it has the same value.
	text string `json:"-"`
}

func init() {
	// The generation increases, and controllers reconcile, only if the length of time changes, and not its form.
	utilruntime.Must(equality.Semantic.AddFuncs(Duration.Equal))
}

// Parse returns the duration of a text, which it remembers.
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

// Text returns the duration in the form in which it was written. For a duration that a program set or changed, it is the form of time.Duration.
func (d Duration) Text() string {
	if parsed, err := time.ParseDuration(d.text); err == nil && parsed == d.Duration {
		return d.text
	}
	return d.String()
}

// Equal reports whether two durations have the same length, in any form.
func (d Duration) Equal(other Duration) bool { return d.Duration == other.Duration }

// UnmarshalJSON decodes the text of a duration. A null does not change the duration.
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

// MarshalJSON encodes the text of the duration.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Text()) }

// ToUnstructured returns the text of the duration, which converters to unstructured objects and server-side apply require.
func (d Duration) ToUnstructured() any { return d.Text() }

// OpenAPISchemaType returns the type in OpenAPI.
func (Duration) OpenAPISchemaType() []string { return []string{"string"} }

// OpenAPISchemaFormat returns no format for OpenAPI.
func (Duration) OpenAPISchemaFormat() string { return "" }
