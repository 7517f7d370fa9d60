// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/clusterhub/clusterhub/pkg/ui/states"
)

// acceptStates is the format that the page requests for objects with their states: a field of each object. The hub is asked for JSON.
const acceptStates = "application/json;as=States"

// fieldStates is the field of an object with its states. No object of the hub has a field of this name.
const fieldStates = "states"

// maxEvent is the largest size of an event of a watch.
const maxEvent = 16 << 20

// withStates passes on a response with the states of its objects: a list, one object, or the events of a watch. Each object is passed on before the next
// is read, so that a long list needs little memory.
func withStates(w http.ResponseWriter, from io.Reader, q *question) {
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	out := &deadlined{w, control}
	var err error
	if q.watch {
		err = events(out, from, q.resource)
	} else {
		err = list(out, from, q.resource)
	}
	if err != nil {
		// The response is incomplete, and the browser must not consider it complete.
		panic(http.ErrAbortHandler)
	}
	// A watch may have had no events for longer than the deadline of the last one, and the end of the response has to reach the browser.
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// deadlined writes within a time limit for each part.
type deadlined struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (d *deadlined) Write(data []byte) (int, error) {
	_ = d.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := d.ResponseWriter.Write(data)
	if err == nil {
		err = d.control.Flush()
	}
	return n, err
}

// events adds states to the objects of a watch.
func events(out io.Writer, from io.Reader, resource string) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	for lines.Scan() {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("reading an event of a watch: %w", err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED", "DELETED":
			event.Object = added(event.Object, resource)
		}
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// list adds states to the items of a list, or to an object that is no list.
func list(out io.Writer, from io.Reader, resource string) error {
	buffered := bufio.NewWriterSize(out, 32<<10)
	decoder := json.NewDecoder(from)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errors.New("expected an object"), err)
	}
	object, items := []byte{'{'}, false
	for separator := ""; decoder.More(); separator = "," {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		object = fmt.Appendf(object, "%s%s:", separator, key)
		if name == "items" {
			items = true
			_, _ = buffered.Write(object) // an error is returned by Flush
			object = object[:0]
			if err := each(buffered, decoder, resource); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		object = append(object, value...)
	}
	if _, err := decoder.Token(); err != nil { // the end of the object
		return err
	}
	object = append(object, '}')
	if !items {
		object = added(object, resource)
	}
	_, _ = buffered.Write(object)
	return buffered.Flush()
}

// each copies the items of a list, with their states.
func each(out *bufio.Writer, decoder *json.Decoder, resource string) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	if token == nil { // a list without items may be null
		_, err := out.WriteString("[]")
		return err
	}
	if token != json.Delim('[') {
		return errors.New("expected a list")
	}
	_, _ = out.WriteString("[") // an error is returned by the next write
	for separator := ""; decoder.More(); separator = "," {
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		_, _ = out.WriteString(separator)
		if _, err := out.Write(added(item, resource)); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil { // the end of the list
		return err
	}
	return out.WriteByte(']')
}

// added returns an object with its states, or as it is if it has none.
func added(object []byte, resource string) []byte {
	found := states.Of(resource, object)
	object = bytes.TrimSpace(object)
	if found == nil || len(object) < 2 || object[len(object)-1] != '}' {
		return object
	}
	data, err := json.Marshal(found)
	if err != nil {
		return object
	}
	body := bytes.TrimSpace(object[:len(object)-1])
	separator := ","
	if len(body) == 1 {
		separator = ""
	}
	return fmt.Appendf(bytes.Clone(body), "%s%q:%s}", separator, fieldStates, data)
}
