// Prints how the Go types of a Kueue write each field of a TrainJob: tests/support/kueue_types.py.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
)

type form struct {
	// Fields that are not written where they are zero.
	Drops []string `json:"drops"`
	// Fields that are.
	Keeps []string `json:"keeps"`
	// Field → the type of what it holds, or of the entries of its list.
	Inside map[string]string `json:"inside"`
}

var (
	forms     = map[string]*form{}
	types     = map[string]reflect.Type{}
	marshaler = reflect.TypeFor[json.Marshaler]()
)

// The struct that a field holds; nil where its fields are not written one by one.
func inside(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Map && inside(t.Elem()) != nil {
		panic("a map of structs: " + t.String())
	}
	if t.Kind() != reflect.Struct || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return nil
	}
	return t
}

func omits(t reflect.Type, options string) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct:
		return false // a pointer to zero is written, and so is a struct
	}
	return strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

func add(made *form, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			add(made, field.Type)
			continue
		}
		if omits(field.Type, options) {
			made.Drops = append(made.Drops, name)
		} else {
			made.Keeps = append(made.Keeps, name)
		}
		if held := inside(field.Type); held != nil {
			made.Inside[name] = visit(held)
		}
	}
}

func visit(t reflect.Type) string {
	name := t.Name()
	if types[name] == nil {
		types[name] = t
		forms[name] = &form{Drops: []string{}, Keeps: []string{}, Inside: map[string]string{}}
		add(forms[name], t)
		sort.Strings(forms[name].Drops)
		sort.Strings(forms[name].Keeps)
	}
	if types[name] != t {
		panic("two types of one name: " + t.String())
	}
	return name
}

// With an argument: writes a TrainJob.spec back as Kueue does, from standard input to standard output.
func main() {
	if len(os.Args) > 1 {
		var spec trainer.TrainJobSpec
		if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(spec); err != nil {
			panic(err)
		}
		return
	}
	visit(reflect.TypeFor[trainer.TrainJobSpec]())
	if err := json.NewEncoder(os.Stdout).Encode(forms); err != nil {
		panic(err)
	}
}
